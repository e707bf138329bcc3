package peer

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ResidentMemory reads /proc/self/status.
func ResidentMemory() (m Memory) {
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

// ForgetPeak restarts Memory.Peak at what is resident now.
func ForgetPeak() {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // if it fails, the peak is older
}

// OpenFiles raises the process's limit of files as far as the system allows, and returns the
// limit.
func OpenFiles() uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return math.MaxUint64 // dialing reports it if the limit is reached
	}
	if most := (unix.Rlimit{Cur: l.Max, Max: l.Max}); l.Cur < l.Max && unix.Setrlimit(unix.RLIMIT_NOFILE, &most) == nil {
		l = most
	}
	return l.Cur
}

// RaiseFiles raises the process's limit of files to need, or as far as the system allows, and returns the limit.
func RaiseFiles(need uint64) uint64 {
	have := OpenFiles()
	if have >= need {
		return have
	}
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: need, Max: need}) != nil {
		return have
	}
	return need
}

// FilesBound says what bounds the files of a process.
func FilesBound() string {
	most, err := os.ReadFile("/proc/sys/fs/nr_open")
	if err != nil {
		most = []byte("not known")
	}
	return fmt.Sprintf("RLIMIT_NOFILE is %d, which only a process with CAP_SYS_RESOURCE can raise, up to fs.nr_open, %s", OpenFiles(), strings.TrimSpace(string(most)))
}
