package transport

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/goiwarp/iwarp/internal/sockerr"
)

// ErrExhausted matches the error of a call that has failed because the process or the system has
// run out of a resource that connections need. The text of the error names the resource.
var ErrExhausted = errors.New("out of resources")

// Exhausted returns an error that matches ErrExhausted, wraps err and names the resource, if err
// is the error of a system call that has run out of a resource. Otherwise it returns err.
func Exhausted(err error) error {
	var what string
	switch {
	case sockerr.Is(err, syscall.EMFILE):
		what = "the process has no file descriptor left" + fileLimit()
	case errors.Is(err, syscall.ENFILE):
		what = "the system has no file descriptor left"
	case sockerr.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM):
		what = "the system has no memory left for sockets"
	default:
		return err
	}
	return fmt.Errorf("%w: %s: %w", ErrExhausted, what, err)
}
