package perf

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// residentMemory reads /proc/self/status.
func residentMemory() (m memory) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return m
	}
	defer f.Close() //nolint:errcheck // it was only read
	for s := bufio.NewScanner(f); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), ":")
		kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch {
		case err != nil:
		case name == "VmRSS":
			m.RSS = kib << 10
		case name == "VmHWM":
			m.Peak = kib << 10
		}
	}
	return m
}

// openFiles allows the process as many files as the system lets it have.
func openFiles() {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil && l.Cur < l.Max {
		l.Cur = l.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &l) // then dialing will tell
	}
}
