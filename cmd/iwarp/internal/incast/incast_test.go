package incast

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer/peertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestMarksInVirtualTime: if the processors take no time, all marks are met.
func TestMarksInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &options{sleep: time.Sleep}
		cmd := new(cobra.Command)
		o.flags(cmd)
		require.NoError(t, cmd.ParseFlags([]string{"--peers", "32", "--size", "524288", "--repeats", "1", "--latency", "50us"}))
		require.NoError(t, o.check())
		r, err := o.measure(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, r.Marks, 10)
		for _, m := range r.Marks {
			require.True(t, m.Met, "%+v", m)
		}
		free := r.of(ways[0].name)[0]
		require.Greater(t, free.Backlog, 1<<20, "without a Solicitor there is a queue")
		require.Greater(t, free.Overflow, int64(1<<20), "which does not fit into the buffer")
		time.Sleep(time.Second) // timers of connections that have ended
	})
}

// TestFirstFailureIsTold, and not the failures that it has caused.
func TestFirstFailureIsTold(t *testing.T) {
	lost := errors.New("the connection is lost")
	waits := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	fails := func(context.Context) error {
		time.Sleep(time.Second)
		return lost
	}
	reads := func(ctx context.Context) error { return ctx.Err() }
	synctest.Test(t, func(t *testing.T) {
		for name, s := range map[string]scene{
			"a host":     {transfers: []func(context.Context) error{waits, fails, waits}, victim: reads},
			"the victim": {transfers: []func(context.Context) error{reads}, victim: fails},
		} {
			o := &options{peers: 1, size: piece, rate: 1e9, buffer: 1 << 20, sleep: time.Sleep}
			_, err := o.run(t.Context(), way{open: func(_ context.Context, made *scene) error {
				made.transfers, made.victim = s.transfers, s.victim
				return nil
			}})
			require.Equal(t, lost, err, name)
		}
	})
}

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.html")
	args := []string{"--peers", "2", "--size", "65536", "--rate", "10000", "--repeats", "1", "--html", page, "--svg", dir}
	var r report
	require.NoError(t, json.Unmarshal([]byte(peertest.Printed(t, Command(), append(args, "--json")...)), &r))
	require.Len(t, r.Samples, 3)
	require.Len(t, r.Marks, 10)
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(html), "<svg"), "two plots")
	for _, name := range []string{"incast-backlog.svg", "incast-victim.svg"} {
		svg, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Contains(t, string(svg), ">rma<", "%s has a line for each way", name)
	}
	require.Contains(t, peertest.Printed(t, Command(), args...), "goodput")
}

// TestQuantilesOfTheVictim are those of all commands: the greatest of 100 times is not their p99.
func TestQuantilesOfTheVictim(t *testing.T) {
	s := new(sample)
	for i := range 100 {
		s.reads = append(s.reads, victimRead{took: time.Duration(100-i) * time.Millisecond})
	}
	s.summarize()
	require.Equal(t, []time.Duration{50 * time.Millisecond, 99 * time.Millisecond}, []time.Duration{s.P50, s.P99})
	require.Equal(t, 100, s.Reads)
}

func TestWrongCalls(t *testing.T) {
	peertest.WithoutInput(t, Command).Refuses(t,
		[]string{"--nonsense"}, []string{"more"}, []string{"--peers", "0"}, []string{"--size", "1"}, []string{"--size", "1G"}, []string{"--rate", "0"}, []string{"--rate", "1000001"}, []string{"--window", "16384"}, []string{"--window", "68719476737"}, []string{"--buffer", "0"}, []string{"--repeats", "0"}, []string{"--latency", "-1s"}, []string{"--latency", "2s"})
}
