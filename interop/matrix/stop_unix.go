//go:build unix

package matrix

import (
	"os"
	"syscall"
)

// stopProcess makes a process stand still, or go on.
func stopProcess(p *os.Process, stop bool) error {
	if stop {
		return p.Signal(syscall.SIGSTOP)
	}
	return p.Signal(syscall.SIGCONT)
}
