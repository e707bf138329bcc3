package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp/internal/hostile/attack"
	"github.com/goiwarp/iwarp/internal/hostile/drive"
)

// childEnv makes the test binary run as the program itself, which starts its own executable.
const childEnv = "HOSTILE_TEST_BE_HOSTILE"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// TestInterrupted: the interrupt comes during the first attackers or during the others. The attackers' process ends, no
// other starts, and nothing is reported of the honest peers, which end as well.
func TestInterrupted(t *testing.T) {
	t.Setenv(childEnv, "1")
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	for name, warm := range map[string]time.Duration{"the first": time.Hour, "the others": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			v, err := newVictim(ctx)
			require.NoError(t, err)
			defer v.close()
			var out bytes.Buffer
			ended := make(chan error, 1)
			go func() { ended <- v.tested(ctx, &out, options{seed: 1, time: time.Hour, parts: 24, warm: warm}) }()
			require.Eventually(t, func() bool { return v.plain.accepted.Load() > 0 }, time.Minute, time.Millisecond, "there are attackers")
			interrupt()
			select {
			case err = <-ended:
			case <-time.After(30 * time.Second):
				require.Fail(t, "it goes on")
			}
			require.Equal(t, context.Canceled, err)
			require.Empty(t, out.String())
		})
	}
}

// TestAttackersAtEveryLayer: 60 conversations for each layer, and every judgement except that of time. The heap says
// nothing after so short a run.
func TestAttackersAtEveryLayer(t *testing.T) {
	o := options{seed: 1, n: 600, time: time.Minute, parts: 24, quiet: 200 * time.Millisecond, together: true, maxGap: 50 * time.Millisecond}
	v, err := newVictim(t.Context())
	require.NoError(t, err)
	defer v.close()
	f, err := v.suffers(t.Context(), o)
	require.NoError(t, err)
	f.heapAfter = f.heapBefore
	var out bytes.Buffer
	f.print(&out)
	t.Log(out.String())
	require.NoError(t, f.judge(0))
	for layer, c := range f.attackers.Layers {
		require.NotZero(t, c.Sent, layer)
		require.Less(t, c.Refused, c.Conversations, layer)
	}
	require.NotZero(t, f.accepted, "some get through the set-up")
}

func TestJudge(t *testing.T) {
	good := func() *findings {
		f := &findings{quiet: &histogram{}, attacked: &histogram{}, after: &histogram{}, heapBefore: 100, heapAfter: 110 + kept}
		f.attackers = &drive.Tally{Layers: map[attack.Layer]*drive.Count{"tcp": {Conversations: 1}}}
		f.visits.made = 1
		for range 100 {
			f.quiet.add(time.Millisecond)
			f.attacked.add(2 * time.Millisecond)
			f.after.add(time.Millisecond)
		}
		return f
	}
	require.NoError(t, good().judge(2))
	for want, change := range map[string]func(f *findings){
		"percentile":       func(f *findings) { f.attacked = &histogram{}; f.attacked.add(3 * time.Millisecond) },
		"heap":             func(f *findings) { f.heapAfter = 111 + kept },
		"could connect":    func(f *findings) { f.visits.made = 0 },
		"Events of honest": func(f *findings) { f.visits.lost = 1 },
		"octets":           func(f *findings) { f.changed = 1 },
		"no attack":        func(f *findings) { f.attackers = &drive.Tally{} },
		"do not work":      func(f *findings) { f.after = &histogram{} },
		"by a friend":      func(f *findings) { f.wrong = []error{errors.New("told by a friend")} },
		"by a visitor":     func(f *findings) { f.visits.wrong = []error{errors.New("told by a visitor")} },
	} {
		f := good()
		change(f)
		require.ErrorContains(t, f.judge(2), want)
	}
}

// TestChangesAreSeen: changes around the bait, but not in it.
func TestChangesAreSeen(t *testing.T) {
	a := &arena{mem: bytes.Repeat([]byte{canary}, guardLen+2*(partLen+guardLen))}
	clear(a.part(0))
	require.Zero(t, a.changed())
	for _, at := range []int{0, guardLen - 1, guardLen + partLen, len(a.mem) - 1} {
		a.mem[at]++
		require.Equal(t, 1, a.changed())
		a.mem[at]--
	}
}

func TestHistogram(t *testing.T) {
	h := &histogram{}
	require.Zero(t, h.quantile(0.5))
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Microsecond)
	}
	require.EqualValues(t, 1000, h.count())
	for part, want := range map[float64]time.Duration{0.5: 500 * time.Microsecond, 0.99: 990 * time.Microsecond, 0.999: time.Millisecond} {
		require.InEpsilon(t, want, h.quantile(part), 0.07)
	}
}
