package endwait

import (
	"context"
	"errors"
	"fmt"
)

// A Cut is the cause with which a queue pair is aborted that was not done when Ctx ended.
type Cut struct{ Ctx context.Context }

func (e *Cut) Error() string { return "iwarp: aborted by shutdown: " + e.Ctx.Err().Error() }

// Unwrap returns the error of Ctx.
func (e *Cut) Unwrap() error { return e.Ctx.Err() }

// An Outcome is how one queue pair has ended: aborted, with an error of its own, or well.
type Outcome struct {
	Aborted bool
	Err     error
}

// OutcomeOf returns the Outcome of an end with err, where an abort would have had the cause cut.
func OutcomeOf(err error, cut *Cut) Outcome {
	if errors.Is(err, cut) {
		return Outcome{Aborted: true}
	}
	return Outcome{Err: err}
}

// Summary counts the queue pairs that have not ended well, and says why the first one has not.
func Summary(ctx context.Context, all []Outcome) error {
	aborted, failed := 0, 0
	var first error
	for _, e := range all {
		switch {
		case e.Aborted:
			aborted++
		case e.Err != nil:
			failed++
			if first == nil {
				first = e.Err
			}
		}
	}
	switch {
	case aborted > 0 && failed > 0:
		return fmt.Errorf("iwarp: shutdown: of %d queue pairs %d were aborted (%w), and %d ended with an error (%w)", len(all), aborted, ctx.Err(), failed, first)
	case aborted > 0:
		return fmt.Errorf("iwarp: shutdown: of %d queue pairs %d were aborted: %w", len(all), aborted, ctx.Err())
	case failed > 0:
		return fmt.Errorf("iwarp: shutdown: of %d queue pairs %d ended with an error: %w", len(all), failed, first)
	}
	return nil
}
