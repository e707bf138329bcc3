package program

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStatus(t *testing.T) {
	fs := flag.NewFlagSet("x", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	for _, c := range []struct {
		err  error
		want int
		text string
	}{
		{nil, 0, ""},
		{Called(fs.Parse([]string{"-h"})), 0, ""},
		{Called(fs.Parse(nil)), 0, ""},
		{Called(fs.Parse([]string{"-x"})), 2, "x: flag provided but not defined: -x\n"},
		{fmt.Errorf("put: %w", UsageError("no file")), 2, "x: put: no file\n"},
		{errors.New("failed"), 1, "x: failed\n"},
		{errors.New("server: no\x1b[2J \u009b1m\nx: done"), 1, "x: server: no\ufffd[2J \ufffd1m; x: done\n"},
	} {
		var out bytes.Buffer
		require.Equal(t, c.want, Status("x", c.err, &out))
		require.Equal(t, c.text, out.String())
	}
	require.True(t, AsksForHelp("--help"))
	require.False(t, AsksForHelp("put"))
}
