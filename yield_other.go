//go:build !linux

package iwarp

import "runtime"

// yield lets another goroutine run.
func yield() { runtime.Gosched() }
