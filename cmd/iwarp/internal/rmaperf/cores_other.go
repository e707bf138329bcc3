//go:build !linux

package rmaperf

import "runtime"

// useCores makes the process use n processors at a time; 0: all. It does not bind the process to particular processors here.
func useCores(n int) error {
	if n == 0 || n > runtime.NumCPU() {
		n = runtime.NumCPU()
	}
	runtime.GOMAXPROCS(n)
	return nil
}
