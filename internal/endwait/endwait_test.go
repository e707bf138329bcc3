package endwait

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

func TestEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		began := time.Now()
		err := Ended("the thing", ended, time.Second)
		require.ErrorIs(t, err, ErrHeldUp)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.ErrorContains(t, err, "iwarp: the thing has not ended yet")
		require.Equal(t, time.Second, time.Since(began))
		close(ended)
		require.NoError(t, Ended("the thing", ended, time.Second))
	})
}

// TestRevoked: it waits only if something is in flight, and its error is the cause of the context's end.
func TestRevoked(t *testing.T) {
	var calls int
	require.NoError(t, Revoked(t.Context(), func(context.Context) error {
		calls++
		return nil
	}))
	require.Equal(t, 1, calls)

	refused := errors.New("refused")
	require.Equal(t, refused, Revoked(t.Context(), func(context.Context) error { return refused }))

	for _, end := range []error{nil, refused} {
		require.Equal(t, end, Revoked(t.Context(), func(ctx context.Context) error {
			if ctx.Err() != nil {
				return ctx.Err() // something is in flight
			}
			return end
		}), "what was in flight has ended before the context")
	}

	synctest.Test(t, func(t *testing.T) {
		inFlight := func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		err := Within(time.Second, func(ctx context.Context) error { return Revoked(ctx, inFlight) })
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.ErrorContains(t, err, "still under way after 1s")

		cause := errors.New("the program ends")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		err = Revoked(ctx, inFlight)
		require.ErrorIs(t, err, context.Canceled, "it matches the error of the context")
		require.ErrorIs(t, err, cause)
		require.EqualError(t, err, "the program ends")
	})
}

// asking is a Buffer whose method calls functions that might wait.
type asking struct{ t *testing.T }

func (b asking) Size() int64 { return 8 }

func (b asking) WriteAt([]byte, int64) (int, error) { return 0, errors.New("read only") }

func (b asking) ReadAt(p []byte, _ int64) (int, error) {
	err := Ended("the thing", nil, time.Hour)
	require.ErrorIs(b.t, err, ErrInBuffer)
	require.ErrorContains(b.t, err, "iwarp: the thing ends when the method returns")
	calls := 0
	err = Revoked(b.t.Context(), func(ctx context.Context) error {
		calls++
		return ctx.Err()
	})
	require.Equal(b.t, ErrInBuffer, err)
	require.Equal(b.t, 1, calls, "without waiting")
	return len(p), nil
}

func TestInsideABuffer(t *testing.T) {
	require.NoError(t, OutsideBuffer("nothing happens"))
	r, err := stag.NewTable().RegisterBuffer(asking{t}, stag.Options{})
	require.NoError(t, err)
	require.NoError(t, r.ReadInto(make([]byte, 8), 0))
}
