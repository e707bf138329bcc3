package cm

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/goiwarp/iwarp/transport"
)

const (
	defaultTries   = 3
	firstDelay     = 10 * time.Millisecond
	longestBackoff = 30 * time.Second
)

// DefaultRetry is an Options.Retry. It makes up to three attempts if descriptors, local ports or memory
// for sockets run out ([transport.ErrExhausted]), or if the peer is busy: the error, or an error that it
// wraps, has a method Busy that returns true. The delays are random: half to all of 10 ms, then of 20 ms.
func DefaultRetry(_ Target, err error, attempt int) (time.Duration, bool) {
	if attempt >= defaultTries || !errors.Is(err, transport.ErrExhausted) && !isBusy(err) {
		return 0, false
	}
	return backoff(attempt), true
}

// isBusy reports whether the peer has refused because it has too many set-ups in progress.
func isBusy(err error) bool {
	var b interface{ Busy() bool }
	return errors.As(err, &b) && b.Busy()
}

// backoff returns how long to wait after an attempt, counted from 1: at random half to all of
// 10 ms x 2^(attempt-1), but of 30 s at most.
func backoff(attempt int) time.Duration {
	d := longestBackoff
	if n := max(attempt, 1) - 1; n < 20 {
		d = min(d, firstDelay<<n)
	}
	return d/2 + rand.N(d/2+1)
}

// sleep waits, unless ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() == nil && d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return causeOf(ctx)
	}
}
