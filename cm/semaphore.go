package cm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// A semaphore lets a number of goroutines into a stage; nil: any number.
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

// stageLimits are how many connections may be in a stage.
type stageLimits struct {
	slots     [numStages]semaphore
	computing time.Duration // how long a set-up keeps its room in StageSecure; 0: as long as it is there
}

// computing is how long this side computes for a handshake of TLS, about. One that takes longer waits for the peer, which
// must not keep others, which have connected, from theirs: their peers do not wait for ever.
const computing = time.Millisecond

// newStageLimits makes those of Options.Stage. Behind StageSecure there are none that were not asked for: a set-up that waits
// there has a connection, whose peer gives it up if nothing comes.
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

// causeOf is the error of a context that has ended, with its cause.
func causeOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) || errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
