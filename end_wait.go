package iwarp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/goiwarp/iwarp/stag"
)

// How long the ends of things may take. What is to end at once can still be held up by code
// of the program that the library calls: a Buffer or a Flusher. Then the call returns all
// the same, and what it was to end ends when that code returns.

// abortTime bounds how long the goroutines of a QP that was aborted are waited for: they
// return at once, unless a Buffer or a Flusher holds them up.
const abortTime = time.Second

var (
	errInBuffer = errors.New("called from a Buffer's own method, which it would have to wait for")
	errHeldUp   = fmt.Errorf("a Buffer or a Flusher of this program has not returned: %w", os.ErrDeadlineExceeded)
)

// noWaiting is a context that has ended.
var noWaiting = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// without calls revoke, which ends accesses and waits under its context until none is in
// flight: first without waiting, and then, unless the caller is inside a Buffer's method,
// under ctx.
func without(ctx context.Context, revoke func(context.Context) error) error {
	err := revoke(noWaiting)
	switch {
	case !errors.Is(err, context.Canceled):
		return err
	case stag.InBuffer():
		return errInBuffer
	}
	if err = revoke(ctx); err != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return err
}

// withinCloseTimeout calls end with a context that ends after Config.CloseTimeout.
func (r *RNIC) withinCloseTimeout(end func(context.Context) error) error {
	d := r.cfg.CloseTimeout
	ctx, cancel := context.WithTimeoutCause(context.Background(), d,
		fmt.Errorf("work requests or placements are still under way after %v: %w", d, os.ErrDeadlineExceeded))
	defer cancel()
	return end(ctx)
}

// waitEnded waits until a QP whose end has begun has ended, but no longer than d.
func (qp *QP) waitEnded(d time.Duration) error {
	if stag.InBuffer() {
		return fmt.Errorf("iwarp: the queue pair ends when the Buffer returns: %w", errInBuffer)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-qp.done:
		return nil
	case <-t.C:
		return fmt.Errorf("iwarp: the queue pair has not ended yet: %w", errHeldUp)
	}
}
