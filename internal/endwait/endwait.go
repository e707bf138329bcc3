// Package endwait waits for operations to end. Code of the application that the library calls can
// delay an operation that should end at once: a method of a Buffer, a Flusher or a net.Conn, or the
// Writer of a Trace. The wait then still ends, with an error, and the operation ends when that code
// returns.
package endwait

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/goiwarp/iwarp/stag"
)

// Why the end of something was not waited for.
var (
	ErrInBuffer = errors.New("called from a method of a Buffer or a Flusher, which it would have to wait for")
	ErrHeldUp   = fmt.Errorf("a Buffer, a Flusher or another function that this program has given to the library has not returned: %w", os.ErrDeadlineExceeded)
)

// OutsideBuffer returns an error if the caller is inside a method of a Buffer or a Flusher, which
// would wait for itself. The error says what happens when the method returns.
func OutsideBuffer(happens string) error {
	if stag.InBuffer() {
		return fmt.Errorf("iwarp: %s when the method returns: %w", happens, ErrInBuffer)
	}
	return nil
}

// Ended waits until the operation named what, whose end has begun, has ended, but no longer than d.
func Ended(what string, ended <-chan struct{}, d time.Duration) error {
	if err := OutsideBuffer(what + " ends"); err != nil {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ended:
		return nil
	case <-t.C:
		return fmt.Errorf("iwarp: %s has not ended yet: %w", what, ErrHeldUp)
	}
}

// noWaiting is a context that has already ended.
var noWaiting = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Revoked calls revoke, which ends accesses and waits under its context until none is in
// flight. The first call does not wait. A second call, unless the caller is inside a Buffer's
// method, waits under ctx. If ctx ends first, the error matches ctx.Err() and the cause of ctx.
func Revoked(ctx context.Context, revoke func(context.Context) error) error {
	err := revoke(noWaiting)
	switch {
	case !errors.Is(err, context.Canceled):
		return err
	case stag.InBuffer():
		return ErrInBuffer
	}
	if err = revoke(ctx); err != nil && errors.Is(err, ctx.Err()) {
		return &lateError{context.Cause(ctx), ctx.Err()}
	}
	return err
}

// A lateError is the cause of the end of a context. It matches the error of the context, too.
type lateError struct{ cause, err error }

func (e *lateError) Error() string   { return e.cause.Error() }
func (e *lateError) Unwrap() []error { return []error{e.cause, e.err} }

// Within calls end with a context that ends after d.
func Within(d time.Duration, end func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), d,
		fmt.Errorf("work requests or placements are still under way after %v: %w", d, os.ErrDeadlineExceeded))
	defer cancel()
	return end(ctx)
}
