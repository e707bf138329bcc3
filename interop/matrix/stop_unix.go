//go:build unix

package matrix

import (
	"os"
	"syscall"
)

// stopProcess stops a process, or continues it.
func stopProcess(p *os.Process, stop bool) error {
	if stop {
		return p.Signal(syscall.SIGSTOP)
	}
	return p.Signal(syscall.SIGCONT)
}
