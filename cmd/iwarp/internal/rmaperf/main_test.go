package rmaperf

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer/peertest"
	"github.com/goiwarp/iwarp/rma"
)

// TestMain is also the program that the command starts once more as its processes.
func TestMain(m *testing.M) {
	peertest.Main(m, func(args []string) error {
		return Main(context.Background(), args, os.Stdin, os.Stdout, os.Stderr)
	}, "perf", "rma")
}

// run runs the command so briefly that what it measures does not count. The rate is one that takes the processors little.
func run(t *testing.T, names string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	args = append([]string{"-pairs", "1", "-time", "2ms", "-rate", "100", "-run", names}, args...)
	if err := Main(t.Context(), args, nil, &out, t.Output()); err != nil {
		require.ErrorIs(t, err, ErrMissed)
	}
	return out.String()
}

// measured is what each measurement comes to.
var measured = map[string]int{
	"percore": 8, "cores": 1, "hops": 1, "failures": 2, "timeouts": 2, "blackhole": 2, "rekey": 1, "rotation": 8, "grace": 2, "fairness": 2,
}

// exact are parts of the names of marks whose value does not depend on the time.
var exact = []string{"refused whose region", "anything but AUTH", "connections that ended", "more than one Open", "reads that failed"}

// TestEachMark is measured.
func TestEachMark(t *testing.T) {
	require.Len(t, measured, len(measurements))
	for _, m := range measurements {
		t.Run(m.name, func(t *testing.T) {
			var r report
			require.NoError(t, json.Unmarshal([]byte(run(t, "^"+m.name+"$", "-json")), &r))
			require.Len(t, r.Marks, measured[m.name])
			require.NotEmpty(t, r.Notes)
			for _, k := range r.Marks {
				if isExact(k.What) {
					require.Zero(t, k.Value, k.What)
				} else {
					require.Less(t, k.Value, 1e6, k.What)
				}
			}
		})
	}
}

func isExact(what string) bool {
	for _, e := range exact {
		if strings.Contains(what, e) {
			return true
		}
	}
	return false
}

func TestTable(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "profile")
	out := run(t, "^rekey$", "-cpuprofile", profile)
	require.Contains(t, out, "measured")
	require.Contains(t, out, "Rekey: p50 ")
	for _, file := range []string{profile + ".client", profile + ".server"} {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Positive(t, info.Size(), file)
	}
}

func TestWrongCalls(t *testing.T) {
	for _, args := range [][]string{
		{"-nonsense"}, {"more"}, {"-pairs", "0"}, {"-time", "0s"}, {"-rate", "0"}, {"-run", "("}, {"-run", "none of them"},
	} {
		require.Error(t, Main(t.Context(), args, nil, t.Output(), t.Output()), args)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	err := Main(ctx, []string{"-run", "percore", "-time", "10s"}, nil, t.Output(), t.Output())
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrMissed)
}

// TestFlowsInVirtualTime: flows of 1 Gb/s find their shares.
func TestFlowsInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		periods, err := measureFlows(&options{rate: 1e9 / 8}, 120)
		require.NoError(t, err)
		b := &bench{opts: &options{}}
		b.judgeFlows(periods[1:])
		require.False(t, b.marks.Missed(), "%v", b.notes)
	})
}

func TestFlowsThatAreNotFair(t *testing.T) {
	b := &bench{opts: &options{}}
	b.judgeFlows([]period{{Rate: 1e8, After: 3, Jain: 1}, {Rate: 2e8, After: -1, Jain: 0.5}})
	require.Len(t, b.marks, 2)
	require.Equal(t, []any{float64(ratePhase), false}, []any{b.marks[0].Value, b.marks[0].Met})
	require.Equal(t, []any{0.5, false}, []any{b.marks[1].Value, b.marks[1].Met})
}

// brief is a bench that runs briefly.
func brief(t *testing.T) *bench {
	t.Helper()
	o, err := parse([]string{"-pairs", "1", "-time", "10ms"}, t.Output())
	require.NoError(t, err)
	b := &bench{opts: o, ctx: context.Background(), stderr: t.Output()} // the server ends by close
	t.Cleanup(func() { require.NoError(t, b.close()) })
	return b
}

// TestRotatedRegionsAreRefused, and no others; and each is read again after one Open.
func TestRotatedRegionsAreRefused(t *testing.T) {
	b := brief(t)
	s := &stand{b: b}
	defer func() { require.NoError(t, s.close()) }()
	r, err := s.rotation(10, 0)
	require.NoError(t, err)
	var all tally
	_, err = r.compare(200, &all)
	require.NoError(t, err)
	require.Positive(t, r.rotated)
	require.Positive(t, all.refused)
	require.NotEmpty(t, all.times)
	require.Equal(t, []int{all.refused, all.refused}, []int{all.opens, all.again})
	require.Equal(t, []int{0, 0, 0}, []int{all.stray, all.other, all.ended})

	_, err = r.block(0, &all) // all are opened again
	require.NoError(t, err)

	// A region that another client rotates was not rotated by the manager.
	_, h, err := s.endOf(r.addr, b.sealedService(10), 1, 3)
	require.NoError(t, err)
	require.NoError(t, h.Rekey(t.Context(), nil, 0))
	all = tally{}
	_, err = r.block(0, &all)
	require.NoError(t, err)
	require.Equal(t, []int{readers, readers}, []int{all.refused, all.stray})
}

func TestOutcomesAreChecked(t *testing.T) {
	require.NoError(t, expect(&rma.OpError{Outcome: rma.NACK, Reason: rma.QueueFull}, rma.NACK, rma.QueueFull))
	for _, err := range []error{nil, context.Canceled, &rma.OpError{Outcome: rma.NACK, Reason: rma.TooLate}, &rma.OpError{Outcome: rma.Timeout}} {
		require.Error(t, expect(err, rma.NACK, rma.QueueFull), "%v", err)
	}
}

// TestServerSaysWhatIsWrong and goes on.
func TestServerSaysWhatIsWrong(t *testing.T) {
	b := brief(t)
	require.NoError(t, b.start())
	for want, o := range map[string]order{
		"no service 7":              {Do: doHold, Service: 7},
		`no service "none"`:         {Do: doOpen, Open: &service{Kind: "none"}},
		"no service is named":       {Do: doOpen},
		"no service 0":              {Do: "fly"},
		"ServerConfig.MaxOp is 100": {Do: doOpen, Open: &service{Kind: kindRMA, MaxOp: 100, Size: 1}},
	} {
		_, err := b.remote.do(o)
		require.ErrorContains(t, err, want)
	}
	a, closed, err := b.open(&service{Kind: kindTLS})
	require.NoError(t, err)
	_, err = b.remote.do(order{Do: doHold, Service: a.Service})
	require.ErrorContains(t, err, "has no regions")
	closed()
	u, err := b.remote.usage()
	require.NoError(t, err)
	require.Positive(t, u.Mallocs)
}

func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld(rma.NewMemory(make([]byte, 8)))
		var buf [8]byte
		_, err := h.ReadAt(buf[:], 0)
		require.NoError(t, err, "it does not wait")
		require.Error(t, h.wait(), "nothing waits")
		h.hold()
		done := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := h.WriteAt([]byte{1}, 3)
				done <- err
			}()
		}
		require.NoError(t, h.wait())
		synctest.Wait()
		require.Empty(t, done)
		h.release()
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		h.release() // again
		h.hold()
		require.Error(t, h.wait(), "those from before do not count")
	})
}
