package scaleperf

import (
	"context"
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer/peertest"
)

// TestMain is also the program that the command starts once more as its processes.
func TestMain(m *testing.M) {
	peertest.Main(m, func(args []string) error {
		return cli.Run(context.Background(), Command(), args, peertest.Streams())
	}, "perf", "scale")
}

// report runs the command, whose marks may be missed, and returns the names of its marks.
func report(t *testing.T, args ...string) (r marks.Report, names []string) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(peertest.Printed(t, Command(), append(args, "--json")...)), &r))
	for _, m := range r.Marks {
		names = append(names, m.What)
	}
	return r, names
}

func TestIdleConnections(t *testing.T) {
	file := t.TempDir() + "/heap"
	r, names := report(t, "--run", "idle", "--qps", "3,100", "--pairs", "2", "--time", "10ms", "--peer-timeout", "1m", "--heapprofile", file)
	require.Equal(t, []string{
		"3 queue pairs: heap and stacks of one", "3 queue pairs: resident memory of one", "3 queue pairs: p99 of a busy one against TCP", "3 queue pairs: scrape of the metrics",
		"100 queue pairs: heap and stacks of one", "100 queue pairs: resident memory of one", "100 queue pairs: p99 of a busy one against TCP", "100 queue pairs: scrape of the metrics",
	}, names)
	require.Greater(t, r.Marks[4].Value, 1.0, "a queue pair takes some memory")
	require.Positive(t, r.Marks[6].Value)
	require.Positive(t, r.Marks[7].Value)
	require.Len(t, r.Notes, 10)
	peertest.HasProfiles(t, file)
}

func TestOverload(t *testing.T) {
	r, names := report(t, "--run", "overload", "--load", "600", "--memory", "64", "--after", "0", "--pairs", "1", "--time", "10ms")
	require.Equal(t, []string{
		"overload: resident memory at most", "overload: connections that were refused without ErrLimit", "overload: writes that failed on accepted connections",
		"overload: throughput after it against before",
	}, names)
	require.Zero(t, r.Marks[1].Value, r.Notes)
	require.Zero(t, r.Marks[2].Value, r.Notes)
	require.Contains(t, r.Notes[0], "iwarp: limit reached: all 409 QPs")
}

// TestCgroup: a directory replaces that of the controller.
func TestCgroup(t *testing.T) {
	dir := t.TempDir()
	o := &options{memory: 100, cgroup: dir}
	_, err := o.newCgroup()
	require.ErrorIs(t, err, fs.ErrNotExist, "it has no limit")
	require.ErrorIs(t, enter(dir), fs.ErrNotExist, "nor processes")
	for _, file := range append(memoryLimits, "cgroup.procs") {
		require.NoError(t, os.WriteFile(dir+"/"+file, nil, 0o600))
		require.NoError(t, overwrite(dir+"/"+file, 7))
		got, err := os.ReadFile(dir + "/" + file)
		require.NoError(t, err)
		require.Equal(t, "7", string(got))
	}
	require.NoError(t, enter(dir))
	require.Equal(t, []string{"--cgroup", "/a"}, cgroup("/a").flags())

	o.cgroup = dir + "/missing"
	_, err = o.newCgroup()
	require.ErrorIs(t, err, fs.ErrNotExist)
	o.cgroup = ""
	none, err := o.newCgroup()
	require.NoError(t, err)
	require.Empty(t, none.flags())
	none.remove()
}

func TestFewDescriptors(t *testing.T) {
	b := &bench{files: func(uint64) uint64 { return 1000 }}
	require.Equal(t, 1000-warmUp-spareFiles, b.possible(5000))
	require.Len(t, b.Notes, 1)
	require.Contains(t, b.Notes[0], "5000 queue pairs need 5768 descriptors")
	b.files = func(uint64) uint64 { return math.MaxUint64 }
	require.Equal(t, 5000, b.possible(5000))
	require.Len(t, b.Notes, 1)
	b.files = func(uint64) uint64 { return 10 }
	require.Error(t, b.many(10, false))
}

func TestWrongCalls(t *testing.T) {
	peertest.WithoutInput(t, Command).Refuses(t,
		[]string{"--nonsense"}, []string{"--qps", "0"}, []string{"--qps", "many"}, []string{"--load", "0"}, []string{"--memory", "1"},
		[]string{"--after", "-1s"}, []string{"--peer-timeout", "-1s"}, []string{"--run", "nothing"}, []string{"more"}, []string{"--serve", "--kind", "other"})
}

func TestEndsEarly(t *testing.T) {
	peertest.WithoutInput(t, Command).EndsEarly(t, "--run", "idle", "--qps", "100", "--pairs", "1000")
}
