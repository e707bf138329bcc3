package cm

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// A timeLimit bounds one target after another. It uses one context and one timer for them until a
// target takes too long.
type timeLimit struct {
	ctx    context.Context // nil: to be made
	cancel context.CancelCauseFunc
	timer  *time.Timer
	until  time.Time     // zero: no limit
	left   time.Duration // while it is paused; else 0
}

// begin returns the context of a target; d is negative if there is no limit.
func (l *timeLimit) begin(ctx context.Context, d time.Duration) context.Context {
	l.until = time.Time{}
	if d < 0 {
		return ctx
	}
	l.until = time.Now().Add(d)
	if l.ctx != nil {
		l.timer.Reset(d)
		return l.ctx
	}
	var cancel context.CancelCauseFunc
	l.ctx, cancel = context.WithCancelCause(ctx)
	l.cancel, l.timer = cancel, time.AfterFunc(d, func() { cancel(context.DeadlineExceeded) })
	return l.ctx
}

// pause stops the clock of a target until resume.
func (l *timeLimit) pause() {
	if !l.until.IsZero() && l.timer.Stop() {
		l.left = max(time.Until(l.until), 1)
	}
}

func (l *timeLimit) resume() {
	if l.left > 0 {
		l.until = time.Now().Add(l.left)
		l.timer.Reset(l.left)
		l.left = 0
	}
}

// end ends the time of a target. It returns err, as a lateError if err is there because the time ran
// out.
func (l *timeLimit) end(err error) error {
	if l.until.IsZero() || l.timer.Stop() {
		return err
	}
	if err != nil && errors.Is(context.Cause(l.ctx), context.DeadlineExceeded) {
		err = &lateError{err}
	}
	l.close()
	return err
}

// close releases the context.
func (l *timeLimit) close() {
	if l.ctx != nil {
		l.timer.Stop()
		l.cancel(nil)
	}
	l.ctx = nil
}

// A lateError is the error of a target whose time is over. It matches what it wraps, but
// context.DeadlineExceeded instead of context.Canceled.
type lateError struct{ err error }

func (e *lateError) Error() string { return context.DeadlineExceeded.Error() + ": " + plain(e.err) }

func (e *lateError) Is(target error) bool {
	return target == context.DeadlineExceeded || target != context.Canceled && errors.Is(e.err, target)
}

func (e *lateError) As(target any) bool { return errors.As(e.err, target) }

// A dialTime is the context of a timeLimit. While a connection is dialled, it has a deadline. Package net divides the time
// until then among the addresses of a host. Without a deadline, the first address that does not answer takes all the time.
type dialTime struct {
	context.Context
	until atomic.Pointer[time.Time]
}

// Deadline returns the end of the limit while a connection is dialled, unless the context has an earlier deadline.
func (c *dialTime) Deadline() (time.Time, bool) {
	at, ok := c.Context.Deadline()
	if until := c.until.Load(); until != nil && (!ok || until.Before(at)) {
		return *until, true
	}
	return at, ok
}
