package backend

import (
	"errors"
	"fmt"
	"syscall"
)

// The kinds of errors, for errors.Is. The package documentation lists the NVMe status of each.
var (
	// ErrNoSpace: the medium has no room for octets that are not allocated yet. Others can be written.
	ErrNoSpace = errors.New("no space left")
	// ErrReadOnly: the Backend, or the file system below it, accepts no changes.
	ErrReadOnly = errors.New("read-only")
	// ErrWrite: the medium could not write, make zeros or trim. The blocks have their old or
	// their new contents, as far as the medium knows.
	ErrWrite = errors.New("write error")
	// ErrRead: the medium could not read.
	ErrRead = errors.New("read error")
	// ErrSync: a sync has failed. Completed writes that were not durable may be lost.
	ErrSync = errors.New("sync error")
	// ErrFailed: a sync has failed earlier, and the Backend accepts no changes until it is
	// opened again.
	ErrFailed = errors.New("failed by an earlier sync error")
	// ErrOutOfRange: the octets are not all within the size.
	ErrOutOfRange = errors.New("out of range")
	// ErrUnaligned: the offset or the length is not a multiple of the block size.
	ErrUnaligned = errors.New("not a multiple of the block size")
	// ErrClosed: the Backend has been closed, or has lost power.
	ErrClosed = errors.New("closed")
)

// Op names an operation.
type Op string

// The operations.
const (
	OpRead        Op = "read"
	OpWrite       Op = "write"
	OpWriteZeroes Op = "write zeroes"
	OpTrim        Op = "trim"
	OpFlush       Op = "flush"
	OpClose       Op = "close"
)

// An Error is the error of one operation. It matches its Kind, and Err, with errors.Is.
type Error struct {
	Kind     error // ErrNoSpace and so on; nil: ctx has ended, as Err says
	Op       Op
	Off, Len int64 // octets; of OpFlush and OpClose: 0
	Err      error // the error of the system; nil: none
}

func (e *Error) Error() string {
	s := "backend: " + string(e.Op)
	if e.Op != OpFlush && e.Op != OpClose {
		s += fmt.Sprintf(" of %d octets at %d", e.Len, e.Off)
	}
	if e.Kind != nil {
		s += ": " + e.Kind.Error()
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns Kind and Err.
func (e *Error) Unwrap() []error {
	var all []error
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// full are the errors of a medium without room: the file system, the quota of the user, or the
// size that files may have.
var full = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, errDiskFull}

// kindOfWrite returns the kind of an error of a write.
func kindOfWrite(err error) error {
	for _, f := range full {
		if errors.Is(err, f) {
			return ErrNoSpace
		}
	}
	if errors.Is(err, syscall.EROFS) {
		return ErrReadOnly
	}
	return ErrWrite
}
