//go:build !linux

package qpconn

import "runtime"

// yield lets another goroutine run.
func yield() { runtime.Gosched() }
