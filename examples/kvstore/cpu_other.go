//go:build !unix

package main

import (
	"errors"
	"time"
)

// processorTime is not available on this system.
func processorTime() (time.Duration, error) {
	return 0, errors.New("the processor time of a process is not known on this system")
}
