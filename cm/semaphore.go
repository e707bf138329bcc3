package cm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// A semaphore limits the number of goroutines in a stage; nil: any number.
type semaphore chan struct{}

// take waits for room, and stops the clock meanwhile. It fails if ctx ends.
func (s semaphore) take(ctx context.Context, clock *timeLimit) error {
	if s == nil {
		return nil
	}
	select {
	case s <- struct{}{}:
		return nil
	default:
	}
	clock.pause()
	defer clock.resume()
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

// stageLimits limit how many connections may be in a stage.
type stageLimits struct {
	slots     [numStages]semaphore
	computing time.Duration // how long a set-up keeps its slot in StageSecure; 0: to the end of the stage
}

// computing is roughly how long this side computes for a TLS handshake. A handshake that takes longer waits for its peer. It
// must not block other connected set-ups meanwhile, because their peers do not wait for ever.
const computing = time.Millisecond

// newStageLimits returns the limits of Options.Stage. After StageSecure there are no default limits: a set-up that waits there
// has a connection, which the peer gives up if nothing arrives.
func newStageLimits(asked [8]int) *stageLimits {
	l := new(stageLimits)
	if asked[StageSecure] == 0 {
		l.computing = computing
	}
	for s, n := range [numStages]int{StageResolve: 64, StageDial: 256, StageSecure: 2 * runtime.GOMAXPROCS(0)} {
		if asked[s] != 0 {
			n = asked[s]
		}
		if n > 0 {
			l.slots[s] = make(semaphore, n)
		}
	}
	return l
}

// causeOf returns the error of a context that has ended, with its cause.
func causeOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) || errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
