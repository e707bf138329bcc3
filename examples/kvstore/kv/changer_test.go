package kv

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnswerCounts: the primary's answer is certain, even if the connection or the time ends at the same moment.
func TestAnswerCounts(t *testing.T) {
	ended := make(chan struct{})
	close(ended)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		for said, want := range map[status]error{statusDone: nil, statusIndexFull: ErrFull} {
			w := waiter{ended: make(chan status, 1)}
			w.ended <- said
			require.ErrorIs(t, w.await(over, ended), want)
			require.ErrorIs(t, w.await(t.Context(), ended), ErrUncertain)
			require.ErrorIs(t, w.await(over, nil), ErrUncertain)
			require.ErrorIs(t, w.await(over, nil), context.Canceled)
		}
	}
}
