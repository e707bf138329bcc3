package backend

import (
	"context"
	"errors"
	"sync/atomic"
)

// A medium stores the octets of a volume. Ranges are within its size and multiples of the block
// size. Errors are those of the system.
//
// The volume never calls two methods for the same octets at once if one is a write, and never calls
// sync twice at once. It calls nothing after close.
type medium interface {
	readAt(p []byte, off int64) error
	writeAt(p []byte, off int64) error
	// writeDurably performs writeAt and a sync of these octets. It is not called twice at once,
	// so that no call gets the error for a page of another one. If it returns errUnsupported, it
	// has done nothing.
	writeDurably(p []byte, off int64) error
	// punch makes zeros and frees their space; zero makes zeros and keeps their space. If they
	// return errUnsupported, they have done nothing.
	punch(off, n int64) error
	zero(off, n int64) error
	// sync makes everything durable that was done before it was called.
	sync() error
	close() error
}

// errUnsupported is the error of a medium that does not support a quick way to do something.
var errUnsupported = errors.New("not supported by the medium")

// A lossError is the error of a change that was also a sync: octets of other writes may be lost.
type lossError struct{ err error }

func (e lossError) Error() string { return e.err.Error() }
func (e lossError) Unwrap() error { return e.err }

const (
	// zeroPart is how many zeros are written at once, with other operations in between.
	zeroPart = 1 << 20
	// quickPart is how many octets a medium makes zeros, or trims, at once if it need not write
	// them.
	quickPart = 64 << 20
)

var zeros [zeroPart]byte

// A volume is a Backend on a medium: it checks operations, keeps blocks atomic, shares syncs, fails
// after a failed sync, and does slowly what the medium cannot do quickly.
type volume struct {
	geometry
	medium   medium
	volatile bool
	traits   Traits

	blocks rangeLock // the range of an operation, while it is in the medium
	syncs  *syncs
	closed atomic.Bool

	// What the medium supports: false after errUnsupported.
	writesDurably, punches, zeroes atomic.Bool
	durably                        atomic.Bool // a writeDurably is running
}

func newVolume(g geometry, m medium, volatile bool, t Traits) (*volume, error) {
	t.Granularity = max(t.Granularity, g.block)
	v := &volume{geometry: g, medium: m, volatile: volatile, traits: t}
	v.blocks.changed.L = &v.blocks.mu
	for _, can := range []*atomic.Bool{&v.writesDurably, &v.punches, &v.zeroes} {
		can.Store(true)
	}
	var err error
	v.syncs, err = newSyncs(g.size, m.sync)
	return v, err
}

// Volatile implements [Backend].
func (v *volume) Volatile() bool { return v.volatile }

// Traits returns the traits for [Describe].
func (v *volume) Traits() Traits { return v.traits }

// ReadAt implements [Backend].
func (v *volume) ReadAt(ctx context.Context, p []byte, off int64) error {
	n := int64(len(p))
	if err := v.begin(ctx, OpRead, off, n, false); err != nil {
		return err
	}
	id := v.blocks.lock(off, n, false)
	defer v.blocks.unlock(id)
	if err := v.goOn(ctx, OpRead, off, n); err != nil {
		return err
	}
	if err := v.medium.readAt(p, off); err != nil {
		return &Error{ErrRead, OpRead, off, n, err}
	}
	return nil
}

// WriteAt implements [Backend].
func (v *volume) WriteAt(ctx context.Context, p []byte, off int64, fua bool) error {
	n := int64(len(p))
	if err := v.begin(ctx, OpWrite, off, n, true); err != nil || n == 0 {
		return err
	}
	if fua && v.volatile && v.writesDurably.Load() && v.durably.CompareAndSwap(false, true) {
		done, err := v.writeThrough(ctx, p, off)
		if done {
			return err
		}
	}
	if err := v.change(ctx, OpWrite, off, n, func() error { return v.medium.writeAt(p, off) }); err != nil {
		return err
	}
	return v.settle(ctx, OpWrite, off, n, fua)
}

// goOn fails if the volume is closed, or ctx has ended. An operation calls it first, and again when it has waited for its octets: when a
// connection is lost its host repeats a write on another one, and may have written something else there since, which must stay.
func (v *volume) goOn(ctx context.Context, op Op, off, n int64) error {
	if v.closed.Load() {
		return &Error{Kind: ErrClosed, Op: op, Off: off, Len: n}
	}
	if err := ctx.Err(); err != nil {
		return &Error{Op: op, Off: off, Len: n, Err: err}
	}
	return nil
}

// change has f change n octets at off, which are to be synced then: also when f fails, for it
// may have changed some.
func (v *volume) change(ctx context.Context, op Op, off, n int64, f func() error) error {
	id := v.blocks.lock(off, n, true)
	defer v.blocks.unlock(id)
	if err := v.goOn(ctx, op, off, n); err != nil {
		return err
	}
	err := f()
	if errors.Is(err, errUnsupported) {
		return err
	}
	if v.volatile {
		v.syncs.touched(off, n)
	}
	return v.judge(op, off, n, err)
}

// judge makes the error of a change of the medium one of ours.
func (v *volume) judge(op Op, off, n int64, err error) error {
	if err == nil {
		return nil
	}
	var loss lossError
	if errors.As(err, &loss) {
		_ = v.syncs.fail(err)
		return &Error{ErrSync, op, off, n, err}
	}
	return &Error{kindOfWrite(err), op, off, n, err}
}

// writeThrough writes with one call that also makes the octets durable. If done is false, the
// medium cannot do that, and has done nothing. Preconditions: the caller has set v.durably.
//
// Only one call runs at a time: the system reports a page that it could not write once per open
// file, and so one of two calls might take the error of the other. Many concurrent writes are
// better served by a shared sync anyway.
func (v *volume) writeThrough(ctx context.Context, p []byte, off int64) (done bool, err error) {
	defer v.durably.Store(false)
	n := int64(len(p))
	id := v.blocks.lock(off, n, true)
	defer v.blocks.unlock(id)
	if err := v.goOn(ctx, OpWrite, off, n); err != nil {
		return true, err
	}
	err = v.medium.writeDurably(p, off)
	switch {
	case err == nil:
		return true, v.syncs.failed(OpWrite, off, n)
	case errors.Is(err, errUnsupported):
		v.writesDurably.Store(false)
		return false, nil
	}
	v.syncs.touched(off, n)
	// Either the write has failed, or the sync of this page or of others. A plain write shows which.
	if again := v.medium.writeAt(p, off); again != nil {
		return true, v.judge(OpWrite, off, n, again)
	}
	return true, v.judge(OpWrite, off, n, lossError{err})
}

// settle makes the n changed octets at off durable, if fua is set.
func (v *volume) settle(ctx context.Context, op Op, off, n int64, fua bool) error {
	switch {
	case !fua:
		return nil
	case !v.volatile:
		return v.syncs.failed(op, off, n)
	}
	return v.syncs.flush(ctx, off, n)
}

// Flush implements [Backend].
func (v *volume) Flush(ctx context.Context) error {
	switch {
	case v.closed.Load():
		return &Error{Kind: ErrClosed, Op: OpFlush}
	case v.syncs.failure.Load() != nil:
		return v.syncs.failed(OpFlush, 0, 0)
	case !v.volatile || v.readOnly:
		return nil
	}
	return v.syncs.flush(ctx, 0, v.size)
}

// begin checks an operation.
func (v *volume) begin(ctx context.Context, op Op, off, n int64, changes bool) error {
	if err := v.goOn(ctx, op, off, n); err != nil {
		return err
	}
	if err := v.check(op, off, n, changes); err != nil {
		return err
	}
	if changes {
		return v.syncs.failed(op, off, n)
	}
	return nil
}

// Close implements [Backend].
func (v *volume) Close() error {
	if v.closed.Swap(true) {
		return &Error{Kind: ErrClosed, Op: OpClose}
	}
	id := v.blocks.lock(0, v.size, true) // those that are in the medium end first
	defer v.blocks.unlock(id)
	v.syncs.close()
	return v.medium.close()
}
