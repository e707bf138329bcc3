package transport

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrExhausted is what the error of a call matches that has failed because the process, or
// the system, has nothing left of something that connections need. It says of what.
var ErrExhausted = errors.New("out of resources")

// Exhausted adds to err, the error of a system call, what has run out, if that is the
// reason.
func Exhausted(err error) error {
	var what string
	switch {
	case errors.Is(err, syscall.EMFILE):
		what = "the process has no file descriptor left" + fileLimit()
	case errors.Is(err, syscall.ENFILE):
		what = "the system has no file descriptor left"
	case errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM):
		what = "the system has no memory left for sockets"
	default:
		return err
	}
	return fmt.Errorf("%w: %s: %w", ErrExhausted, what, err)
}
