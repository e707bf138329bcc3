package commitperf

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer/peertest"
)

// TestMain is also the program that the command starts once more as its targets.
func TestMain(m *testing.M) {
	peertest.Main(m, func(args []string) error {
		return cli.Run(context.Background(), Command(), args, peertest.Streams())
	}, "perf", "commit")
}

func TestReport(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, cli.Run(t.Context(), Command(), []string{"--span", "5ms", "--goal=false", "--dir", t.TempDir()}, cli.Streams{Out: &out, Err: t.Output()}))
	for _, want := range []string{"none   latency", "file   latency", "goal: push / pull", "against its serial rate", "file            256"} {
		require.Contains(t, out.String(), want)
	}
	require.Error(t, cli.Run(t.Context(), Command(), []string{"--nonsense"}, cli.Streams{Out: &out, Err: &out}))
	for _, span := range []string{"1ns", "0", "-1s"} {
		err := cli.Run(t.Context(), Command(), []string{"--span", span, "--dir", t.TempDir()}, cli.Streams{Out: &out, Err: &out})
		require.ErrorAs(t, err, new(cli.UsageError), span)
	}
}

func TestGoals(t *testing.T) {
	var out bytes.Buffer
	r := &report{out: &out}
	r.goal("low", 1, 1, true)
	r.goal("high", 1, 1, false)
	require.False(t, r.missed)
	r.goal("low", 1.1, 1, true)
	require.True(t, r.missed)
	require.Contains(t, out.String(), "1.10, MISSED")
	out.Reset()
	r.json = true
	r.goal("high", 2, 1, false)
	require.JSONEq(t, `{"goal": "high", "target": 1, "least": true, "value": 2, "met": true}`, out.String())
}

func clusterOf(t *testing.T, o options, pulls bool) *cluster {
	o.dir, o.cc = t.TempDir(), peer.DefaultCC
	c, err := openCluster(context.Background(), o, pulls, t.Output())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.close(), "the target ends well") })
	return c
}

func TestEveryPushIsSynced(t *testing.T) {
	c := clusterOf(t, options{medium: fileMedium, slots: 2}, false)
	for range 3 {
		require.NoError(t, c.ends[1].push())
		require.NoError(t, c.ends[1].emptyRead())
	}
	n, err := c.syncs(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
}

func TestPulls(t *testing.T) {
	c := clusterOf(t, options{medium: fileMedium, slots: 1}, true)
	require.NoError(t, c.ends[0].pull())
	n, err := c.syncs(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

func TestTargetHasSoManySlots(t *testing.T) {
	c := clusterOf(t, options{medium: noMedium, slots: 1}, false)
	_, err := c.connect(t.Context(), 1)
	require.ErrorIs(t, err, iwarp.ErrRejected)
	n, err := c.syncs(t.Context())
	require.NoError(t, err)
	require.Zero(t, n, "without a medium")
}

func TestTargetThatCannotStart(t *testing.T) {
	var errs bytes.Buffer
	_, err := openCluster(t.Context(), options{dir: "/nowhere", medium: fileMedium, slots: 1}, false, &errs)
	require.Error(t, err)
	require.Contains(t, errs.String(), "nowhere")
}

func TestGreetingsOfAnotherLength(t *testing.T) {
	require.Error(t, new(greeting).parse(nil))
	require.Error(t, new(welcome).parse(make([]byte, welcomeLen+1)))
}

// TestInterrupted: the program ends when it is interrupted during a measurement.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	err := cli.Run(ctx, Command(), []string{"--span", "1h", "--goal=false", "--dir", t.TempDir()}, cli.Streams{Out: t.Output(), Err: t.Output()})
	require.Error(t, err)
}

func TestPullsForOthers(t *testing.T) {
	p, err := OpenPulls(t.Context(), t.TempDir(), 3, "", t.Output())
	require.NoError(t, err)
	require.NoError(t, p.Run(20))
	require.NoError(t, p.Close())
	require.Error(t, p.Run(1), "it is closed")
}
