package cm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// A semaphore lets a number of goroutines into a stage; nil: any number.
type semaphore chan struct{}

// take waits for room. It fails if ctx ends.
func (s semaphore) take(ctx context.Context) error {
	if s == nil {
		return nil
	}
	select {
	case s <- struct{}{}:
		return nil
	default:
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return causeOf(ctx)
	}
}

// give makes room.
func (s semaphore) give() {
	if s != nil {
		<-s
	}
}

// stageLimits are how many connections may be in a stage.
type stageLimits [numStages]semaphore

// newStageLimits makes those of Options.Stage.
func newStageLimits(asked [8]int) *stageLimits {
	l := new(stageLimits)
	for s, n := range [numStages]int{
		StageResolve: 64, StageQP: -1, StageDial: 256, StageSecure: 2 * runtime.GOMAXPROCS(0),
		StageRequest: 256, StageReply: 256, StageConfirm: 256, StageReady: -1,
	} {
		if asked[s] != 0 {
			n = asked[s]
		}
		if n > 0 {
			l[s] = make(semaphore, n)
		}
	}
	return l
}

// causeOf is the error of a context that has ended, with its cause.
func causeOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) || errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
