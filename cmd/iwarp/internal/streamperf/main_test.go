package streamperf

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer/peertest"
)

// TestMain is also the program that the command starts once more as its server.
func TestMain(m *testing.M) {
	peertest.Main(m, func(args []string) error {
		if args[0] != "streams" {
			return errors.New("no such command")
		}
		return cli.Run(context.Background(), Command(), args[1:], peertest.Streams())
	}, "perf")
}

// run runs the command so briefly that its results have no meaning.
func run(t *testing.T, names string, args ...string) string {
	t.Helper()
	return peertest.Printed(t, Command(), append([]string{"--pairs", "1", "--time", "2ms", "--run", names}, args...)...)
}

// measured is how many marks each measurement produces.
var measured = map[string]int{"stream": 3, "pingpong": 2, "read": 4}

// TestEachMark is measured.
func TestEachMark(t *testing.T) {
	require.Len(t, measured, len(measurements))
	peertest.EachMark(t, measured, run, func(t *testing.T, k *marks.Mark) {
		if !strings.Contains(k.What, "allocations") {
			require.Positive(t, k.Value, k.What)
		}
	})
}

func TestTable(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "profile")
	out := run(t, "^pingpong$", "--cpuprofile", profile, "--crc=false")
	require.Contains(t, out, "measured")
	require.Contains(t, out, "64-octet ping-pong of rsockets")
	peertest.HasProfiles(t, profile)
}

func TestWrongCalls(t *testing.T) {
	peertest.WithoutInput(t, Command).Refuses(t,
		[]string{"--nonsense"}, []string{"more"}, []string{"--pairs", "0"}, []string{"--time", "0s"}, []string{"--run", "("}, []string{"--run", "none of them"})
}

func TestInterrupted(t *testing.T) {
	peertest.WithoutInput(t, Command).EndsEarly(t, "--run", "^stream", "--time", "10s")
}

func TestWrongOrders(t *testing.T) {
	s := &server{services: make([]opened, 1)}
	for want, o := range map[string]order{
		"no such service":   {Close: 7},
		`no service "tape"`: {Open: &service{Kind: "tape"}},
	} {
		_, err := s.do(t.Context(), &o)
		require.ErrorContains(t, err, want)
	}
	for i, kind := range []string{kindTCP, kindSocket, kindEcho, kindMemory, kindSends, kindGet, kindNFS} {
		a, err := s.do(t.Context(), &order{Open: &service{Kind: kind, Size: kib}})
		require.NoError(t, err)
		require.Equal(t, i+1, a.Service)
	}
	_, err := s.do(t.Context(), &order{Close: 2})
	require.NoError(t, err)
	_, err = s.do(t.Context(), &order{Close: 2})
	require.ErrorContains(t, err, "no such service", "it is closed")
	s.close()
}

// TestReadCalls that make no sense are refused.
func TestReadCalls(t *testing.T) {
	off, n, err := readArgs(appendReadCall(nil, 7, 3*mib, mib))
	require.NoError(t, err)
	require.Equal(t, 3*mib, off)
	require.Equal(t, mib, n)
	for _, msg := range [][]byte{nil, appendReadCall(nil, 7, fileSize, 1), appendReadCall(nil, 7, 1, 1<<32-1), appendReadCall(nil, 7, 1<<63, 1), make([]byte, readCallLen+4)} {
		_, _, err := readArgs(msg)
		require.Error(t, err)
	}
}
