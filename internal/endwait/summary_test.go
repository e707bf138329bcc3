package endwait

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSummary(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cut := &Cut{Ctx: ctx}
	require.ErrorIs(t, cut, context.Canceled)
	aborted := OutcomeOf(fmt.Errorf("ended: %w", cut), cut)
	failed, well := OutcomeOf(io.EOF, cut), OutcomeOf(nil, cut)
	require.NoError(t, Summary(ctx, []Outcome{well}))
	require.EqualError(t, Summary(ctx, []Outcome{well, aborted}),
		"iwarp: shutdown: of 2 queue pairs 1 were aborted: context canceled")
	require.EqualError(t, Summary(ctx, []Outcome{failed, well, {Err: io.ErrClosedPipe}}),
		"iwarp: shutdown: of 3 queue pairs 2 ended with an error: EOF")
	require.EqualError(t, Summary(ctx, []Outcome{failed, aborted}),
		"iwarp: shutdown: of 2 queue pairs 1 were aborted (context canceled), and 1 ended with an error (EOF)")
}
