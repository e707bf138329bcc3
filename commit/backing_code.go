package commit

import (
	"context"
	"errors"
	"slices"
	"syscall"
)

// codeOf returns the code that the peer receives for err, which a Flusher has returned.
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
// system has dropped the pages that it could not write, and the next sync succeeds without them. For a Flusher of the
// user the errno decides; most errnos mean a loss.
func loses(err error) bool {
	c := codeOf(err)
	return c == DataLost || c&Vendor != 0 || errors.Is(err, ErrDataLost)
}

// asLoss returns err, with which a sync of the system has failed, as a loss, whatever its errno. With that errno the file
// system failed to write a page; it may be that of an interruption or of a lack of memory. Linux reports
// it once, and then counts the page as written. A read-only file system is nevertheless reported as such, because writing
// again is in vain.
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

// coded returns err as an *Error with code c, unless it already is one.
func coded(c Code, err error) error {
	if own, ok := errors.AsType[*Error](err); ok && own.Status.Code() == c {
		return err
	}
	return &Error{MakeStatus(NoRegion, c), err}
}

// losing are the errors that are reported as DataLost.
var losing = []syscall.Errno{
	syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.ENXIO, syscall.ENODEV, syscall.ETIMEDOUT, syscall.ESTALE,
}

// transients are the errors after which the octets are where they were: errors of a Flusher of the user, and of system
// calls that follow a successful sync.
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
