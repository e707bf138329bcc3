package peertest

import (
	"bytes"
	"context"
	"encoding/json"
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

// Streams returns the streams of this process.
func Streams() cli.Streams { return cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr} }

// WithoutInput returns a command without input, whose output is that of the test.
func WithoutInput(t *testing.T, command func() *cobra.Command) Command {
	return func(ctx context.Context, args []string) error {
		return cli.Run(ctx, command(), args, cli.Streams{Out: t.Output(), Err: t.Output()})
	}
}

// Refuses requires that the command reports a wrong call for each list of arguments.
func (c Command) Refuses(t *testing.T, calls ...[]string) {
	t.Helper()
	for _, args := range calls {
		require.ErrorAs(t, c(t.Context(), args), new(cli.UsageError), args)
	}
}

// EndsEarly requires that the command fails when its context ends, and not because of a mark. With these arguments the
// command must take more than a moment.
func (c Command) EndsEarly(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	err := c(ctx, args)
	require.Error(t, err)
	require.NotErrorIs(t, err, marks.ErrMissed)
}

// Printed returns what a command prints; its marks may be missed.
func Printed(t *testing.T, command *cobra.Command, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := cli.Run(t.Context(), command, args, cli.Streams{Out: &out, Err: t.Output()}); err != nil {
		require.ErrorIs(t, err, marks.ErrMissed)
	}
	return out.String()
}

// EachMark makes run take each measurement, requires notes and the given number of marks from it, and calls check for each mark.
func EachMark(t *testing.T, measured map[string]int, run func(t *testing.T, names string, args ...string) string, check func(*testing.T, *marks.Mark)) {
	for name, n := range measured {
		t.Run(name, func(t *testing.T) {
			var r marks.Report
			require.NoError(t, json.Unmarshal([]byte(run(t, "^"+name+"$", "--json")), &r))
			require.Len(t, r.Marks, n)
			require.NotEmpty(t, r.Notes)
			for i := range r.Marks {
				check(t, &r.Marks[i])
			}
		})
	}
}

// HasProfiles requires that a command with the flag --cpuprofile has written its profiles.
func HasProfiles(t *testing.T, profile string) {
	t.Helper()
	for _, file := range []string{profile + ".client", profile + ".server"} {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Positive(t, info.Size(), file)
	}
}
