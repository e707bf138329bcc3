package backend

import (
	"context"
	"sync/atomic"

	"github.com/goiwarp/iwarp/commit"
)

// syncs lets the Flushes of a medium share its syncs, by the group commit of package commit, and
// remembers that a sync has failed.
//
// Package commit reports lost octets as durable again once they have been rewritten. That is not
// enough here: a host whose Flush failed does not know which writes are lost. So the first failure
// stays until the Backend is opened again.
type syncs struct {
	group   *commit.Group
	size    int64
	failure atomic.Pointer[Error] // of the first sync that failed; its kind is ErrSync
}

func newSyncs(size int64, sync func() error) (*syncs, error) {
	s := &syncs{size: size}
	group, err := commit.NewGroup(size, func() error {
		if s.failure.Load() != nil { // of the Flushes that waited while it failed
			return s.failure.Load()
		}
		if err := sync(); err != nil {
			return s.fail(err)
		}
		return nil
	})
	s.group = group
	return s, err
}

// fail makes the Backend failed by err, and returns the error of all Flushes that share the sync.
func (s *syncs) fail(err error) *Error {
	s.failure.CompareAndSwap(nil, &Error{Kind: ErrSync, Op: OpFlush, Err: err})
	return s.failure.Load()
}

// failed returns an error if an earlier sync has failed.
func (s *syncs) failed(op Op, off, n int64) error {
	if f := s.failure.Load(); f != nil {
		return &Error{Kind: ErrFailed, Op: op, Off: off, Len: n, Err: f.Err}
	}
	return nil
}

// touched records that octets have been changed and are not durable.
func (s *syncs) touched(off, n int64) { s.group.Touched(off, n) }

// flush makes durable what was touched before. Preconditions: the Backend had not failed when
// the caller began.
func (s *syncs) flush(ctx context.Context, off, n int64) error {
	err := s.group.Flush(ctx, off, n)
	if f := s.failure.Load(); f != nil {
		return f
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return &Error{Op: OpFlush, Err: err}
	}
	return &Error{Kind: ErrClosed, Op: OpFlush} // the only other error of a group
}

// close waits for the syncs that are running.
func (s *syncs) close() { _ = s.group.Close() }
