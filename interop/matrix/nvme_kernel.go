package matrix

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"
)

// harmless matches what the kernel logs as a warning in cases where nothing is wrong.
var harmless = []string{
	`Removing ctrl: NQN`,
	`nvme nvme\d+: rescanning namespaces`,
	`iwarp-lab: case `,
	// An emulated machine whose host is busy logs these.
	`hrtimer: interrupt took`,
	`clocksource: `,
	`TSC found unstable`,
	`block device autoloading is deprecated`, // something looks for a removed device
	`long keepalive RTT`,
	`callbacks suppressed`, // a line was repeated often; it is checked itself
}

// alarming matches what is not harmless at any level.
var alarming = regexp.MustCompile(`BUG:|WARNING:|Call Trace|blocked for more than|I/O error|timed? ?out|siw: .*(error|fail)`)

// watchKernel makes the case check at its end, before it ends its programs, what the kernel has logged since this call.
func (t *T) watchKernel() {
	mark := t.kernelMark()
	// A line without a newline is not read until another one follows.
	require.NoError(t, os.WriteFile("/dev/kmsg", []byte("<5>"+mark+"\n"), 0), "mark in the kernel's log")
	t.Cleanup(func() {
		log := t.kernelSays()
		if err := os.WriteFile(filepath.Join(t.Dir, "kernel.log"), []byte(log), 0o644); err != nil {
			t.Errorf("%v", err)
		}
		if bad := objections(log, t.Kernel); len(bad) > 0 {
			t.Errorf("the kernel says: %s", strings.Join(bad[:min(3, len(bad))], " | "))
		}
	})
}

func (t *T) kernelMark() string { return fmt.Sprintf("iwarp-lab: case %s begins", t.Name) }

// kernelSays returns what the kernel has logged since the case began.
func (t *T) kernelSays() string {
	out, err := exec.Command("dmesg", "-r").Output()
	if err != nil {
		t.Errorf("dmesg: %v", err)
	}
	log := string(out)
	if _, after, ok := strings.Cut(log, t.kernelMark()); ok {
		return after
	}
	return log
}

// objections returns the lines of a kernel's log, with levels ("dmesg -r"), that are warnings or worse, or alarming, and are
// neither harmless nor allowed.
func objections(log string, allowed []string) (bad []string) {
	fine := regexp.MustCompile(strings.Join(append(allowed, harmless...), "|"))
	for line := range strings.Lines(log) {
		level, text, ok := kernelLine(line)
		if ok && (level <= 4 || alarming.MatchString(text)) && !fine.MatchString(text) {
			bad = append(bad, text)
		}
	}
	return bad
}

// kernelLine splits a line of "dmesg -r" into its level, 0 to 7, and its text.
func kernelLine(line string) (level int, text string, ok bool) {
	var priority int
	if n, err := fmt.Sscanf(line, "<%d>", &priority); n != 1 || err != nil {
		return 0, "", false
	}
	_, text, _ = strings.Cut(strings.TrimSpace(line), ">")
	if _, after, timed := strings.Cut(text, "] "); timed && strings.HasPrefix(text, "[") {
		text = after
	}
	return priority & 7, text, true
}
