package pace

import (
	"context"
	"time"
)

// steps is the number of parts in which a limit passes.
const steps = 8

// longestStep is the longest part, for limits of many minutes.
const longestStep = 5 * time.Second

// Context returns a context that ends with the cause when the limit, extended according to the load
// meanwhile, has passed. A nil cause stands for [context.DeadlineExceeded].
func (g *Gauge) Context(parent context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc) {
	if cause == nil {
		cause = context.DeadlineExceeded
	}
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		if g.pass(ctx, limit) {
			cancel(cause)
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// pass returns true when the limit has passed, and false if the context has ended before.
func (g *Gauge) pass(ctx context.Context, limit time.Duration) bool {
	step := min(max(limit/steps, 1), longestStep)
	for left := limit; left > 0; left -= step {
		wait := time.NewTimer(g.Stretch(min(step, left)))
		select {
		case <-ctx.Done():
			wait.Stop()
			return false
		case <-wait.C:
		}
	}
	return true
}
