package commit

import (
	"context"
	"errors"
	"syscall"
)

// codeOf says what the peer is told of err, which a Flusher has returned.
func codeOf(err error) Code {
	var own *Error
	var no syscall.Errno
	switch {
	case err == nil:
		return OK
	case errors.As(err, &own) && own.Status != 0:
		return own.Status.Code()
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Transient
	case errors.As(err, &no):
		return codeOfErrno(no)
	}
	return Failed
}

// codeOfErrno knows that a page that could not be written is dropped by the system:
// the next sync would succeed without it.
func codeOfErrno(no syscall.Errno) Code {
	switch no {
	case syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.ENXIO, syscall.ENODEV, syscall.ETIMEDOUT, syscall.ESTALE:
		return DataLost
	case syscall.EROFS:
		return ReadOnly
	case syscall.EINTR, syscall.EAGAIN, syscall.ENOMEM:
		return Transient
	}
	if no > 0 && no < 0x8000 {
		return Vendor | Code(no)
	}
	return Failed
}
