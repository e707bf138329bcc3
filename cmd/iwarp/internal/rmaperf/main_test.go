package rmaperf

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer/peertest"
)

// TestMain is also the program that the command starts once more as its processes.
func TestMain(m *testing.M) {
	peertest.Main(m, func(args []string) error {
		return cli.Run(context.Background(), Command(), args, peertest.Streams())
	}, "perf", "rma")
}

// run runs the command so briefly that its results have no meaning. The rate takes little processor time.
func run(t *testing.T, names string, args ...string) string {
	t.Helper()
	return peertest.Printed(t, Command(), append([]string{"--pairs", "1", "--time", "2ms", "--rate", "100", "--run", names}, args...)...)
}

// measured is how many marks each measurement produces.
var measured = map[string]int{
	"percore": 8, "cores": 1, "hops": 1, "failures": 2, "timeouts": 2, "blackhole": 2, "rekey": 1, "rotation": 8, "grace": 2, "fairness": 2,
}

// exact are parts of the names of marks whose value does not depend on the time.
var exact = []string{"refused whose region", "anything but AUTH", "connections that ended", "more than one Open", "reads that failed"}

// TestEachMark is measured.
func TestEachMark(t *testing.T) {
	require.Len(t, measured, len(measurements))
	peertest.EachMark(t, measured, run, func(t *testing.T, k *marks.Mark) {
		if isExact(k.What) {
			require.Zero(t, k.Value, k.What)
		} else {
			require.Less(t, k.Value, 1e6, k.What)
		}
	})
}

func isExact(what string) bool {
	return slices.ContainsFunc(exact, func(e string) bool { return strings.Contains(what, e) })
}

func TestTable(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "profile")
	out := run(t, "^rekey$", "--cpuprofile", profile)
	require.Contains(t, out, "measured")
	require.Contains(t, out, "Rekey: p50 ")
	peertest.HasProfiles(t, profile)
}

func TestWrongCalls(t *testing.T) {
	peertest.WithoutInput(t, Command).Refuses(t,
		[]string{"--nonsense"}, []string{"more"}, []string{"--pairs", "0"}, []string{"--time", "0s"}, []string{"--rate", "0"}, []string{"--rate", "1000001"}, []string{"--run", "("}, []string{"--run", "none of them"})
}

func TestInterrupted(t *testing.T) {
	peertest.WithoutInput(t, Command).EndsEarly(t, "--run", "percore", "--time", "10s")
}

// TestFlowsInVirtualTime: flows of 1 Gb/s find their shares when the link is halved and doubled. How soon is a mark, and not
// a test: even in virtual time, the order of two goroutines varies.
func TestFlowsInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		periods, err := measureFlows(&options{rate: 1e9 / 8}, 120)
		require.NoError(t, err)
		require.Len(t, periods, 3)
		for _, p := range periods[1:] {
			require.Greater(t, p.Jain, 0.95, "%+v", p)
			require.Greater(t, p.Used, 0.9, "%+v", p)
		}
	})
}
