package peertest

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
)

// A Command is the main function of a command, with its streams.
type Command func(ctx context.Context, args []string) error

// WithoutInput is the command of a main function, whose output is that of the test.
func WithoutInput(t *testing.T, main func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error) Command {
	return func(ctx context.Context, args []string) error { return main(ctx, args, nil, t.Output(), t.Output()) }
}

// Refuses requires that the command fails with each list of arguments.
func (c Command) Refuses(t *testing.T, calls ...[]string) {
	t.Helper()
	for _, args := range calls {
		require.Error(t, c(t.Context(), args), args)
	}
}

// EndsEarly requires that the command fails when its context ends, and not because of a mark. The arguments have to be
// those of a call that takes longer than a moment.
func (c Command) EndsEarly(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	err := c(ctx, args)
	require.Error(t, err)
	require.NotErrorIs(t, err, marks.ErrMissed)
}

// HasProfiles requires that a command with the flag -cpuprofile has written what it promises.
func HasProfiles(t *testing.T, profile string) {
	t.Helper()
	for _, file := range []string{profile + ".client", profile + ".server"} {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Positive(t, info.Size(), file)
	}
}
