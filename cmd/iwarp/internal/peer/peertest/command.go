package peertest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
)

// A Command runs a command, with its streams.
type Command func(ctx context.Context, args []string) error

// Streams are those of this process.
func Streams() cli.Streams { return cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr} }

// WithoutInput is a command without input, whose output is that of the test.
func WithoutInput(t *testing.T, command func() *cobra.Command) Command {
	return func(ctx context.Context, args []string) error {
		return cli.Run(ctx, command(), args, cli.Streams{Out: t.Output(), Err: t.Output()})
	}
}

// Refuses requires that the command says of each list of arguments that it was called wrongly.
func (c Command) Refuses(t *testing.T, calls ...[]string) {
	t.Helper()
	for _, args := range calls {
		require.ErrorAs(t, c(t.Context(), args), new(cli.UsageError), args)
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

// HasProfiles requires that a command with the flag --cpuprofile has written what it promises.
func HasProfiles(t *testing.T, profile string) {
	t.Helper()
	for _, file := range []string{profile + ".client", profile + ".server"} {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Positive(t, info.Size(), file)
	}
}
