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
	if own, ok := errors.AsType[*Error](err); ok && own.Status != 0 {
		return own.Status.Code()
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Transient
	}
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		return codeOfErrno(no)
	}
	return Failed
}

// loses reports whether it is unknown what is on the disk after a sync that has failed with err: the
// system has dropped the pages that it could not write, and the next sync succeeds without them. Of a Flusher of the
// user's the errno says so; most do.
func loses(err error) bool {
	c := codeOf(err)
	return c == DataLost || c&Vendor != 0 || errors.Is(err, ErrDataLost)
}

// asLoss is the error of a sync of the system that has failed with err, whatever the errno. It is the one with which
// the file system has failed to write a page, and may be that of an interruption, or for want of memory. Linux reports
// it once, and the page counts as written. A file system that takes no changes is told as such all the same, for to
// write again is in vain.
func asLoss(err error) error {
	if err == nil {
		return nil
	}
	lost := coded(DataLost, err)
	if errors.Is(err, syscall.EROFS) {
		return coded(ReadOnly, lost)
	}
	return lost
}

// coded is err as an error with a code, which it may be already.
func coded(c Code, err error) error {
	if own, ok := errors.AsType[*Error](err); ok && own.Status.Code() == c {
		return err
	}
	return &Error{MakeStatus(NoRegion, c), err}
}

// losing are the errors that are told as DataLost.
var losing = []syscall.Errno{
	syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.ENXIO, syscall.ENODEV, syscall.ETIMEDOUT, syscall.ESTALE,
}

// transients are the errors after which the octets are where they were: of a Flusher of the user's, and of what is
// asked of the system after a sync that has succeeded.
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
