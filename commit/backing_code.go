package commit

import (
	"context"
	"errors"
	"slices"
	"syscall"
)

// codeOf says what the peer is told of err, which a Flusher has returned.
func codeOf(err error) Code {
	if err == nil {
		return OK
	}
	var own *Error
	if errors.As(err, &own) && own.Status != 0 {
		return own.Status.Code()
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Transient
	}
	var no syscall.Errno
	if errors.As(err, &no) {
		return codeOfErrno(no)
	}
	return Failed
}

// loses reports whether it is unknown what is on the disk after a sync that has failed like this: the
// system has dropped the pages that it could not write, and the next sync succeeds without them.
// The errno of such a sync is that of the disk or of the server, and may be any.
func (c Code) loses() bool { return c == DataLost || c&Vendor != 0 }

// losing are the errors that are told as DataLost.
var losing = []syscall.Errno{
	syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.ENXIO, syscall.ENODEV, syscall.ETIMEDOUT, syscall.ESTALE,
}

var transients = []syscall.Errno{syscall.EINTR, syscall.EAGAIN, syscall.ENOMEM}

func codeOfErrno(no syscall.Errno) Code {
	switch {
	case slices.Contains(losing, no):
		return DataLost
	case no == syscall.EROFS:
		return ReadOnly
	case slices.Contains(transients, no):
		return Transient
	case no > 0 && no < syscall.Errno(Vendor):
		return Vendor | Code(no)
	}
	return Failed
}
