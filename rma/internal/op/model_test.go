package op

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A schedule is a world with random steps.
type schedule struct {
	*world
	rand  *rand.Rand
	quiet int // steps without time between two with time
	steps []step
	way   []step
}

func newSchedule(seed uint64) *schedule {
	r := rand.New(rand.NewPCG(seed, 17))
	ms := func(of ...int) time.Duration { return time.Duration(of[r.IntN(len(of))]) * time.Millisecond }
	pull := ms(1, 5, 20, 100)
	rate := time.Duration(r.IntN(501))
	p := params{
		n: 1 + r.IntN(maxOps), rate: [2]time.Duration{rate, -rate}, copying: 9 * time.Millisecond,
		cuts: r.IntN(3) == 0, closes: r.IntN(8) == 0, window: r.IntN(4) == 0, junk: [2]bool{r.IntN(16) == 0, r.IntN(16) == 0},
	}
	if r.IntN(2) == 0 {
		p.rate = [2]time.Duration{-rate, rate}
	}
	linger, timeouts := ms(0, 5, 50), []int{1 + r.IntN(10), 50, 200}
	for i := range p.n {
		p.plans[i] = randomPlan(r, ms(timeouts...))
	}
	dispatch := [2]time.Duration{ms(0, 5, 50), ms(0, 5, 50)}
	credits := 1 + r.IntN(3)
	return &schedule{
		rand: r, quiet: 1 + r.IntN(40),
		world: newWorld(p, ClientConfig{
			Slots: 1 + r.IntN(4), Credits: credits, Dispatch: dispatch, OpTimeout: time.Second,
			PullTimeout: pull, Guard: MinGuard(pull), Linger: linger, Overhead: 16,
		}, ServerConfig{
			Credits: credits, Records: 2 * credits, Queue: 1 + r.IntN(3), MaxOp: 4096, Dispatch: dispatch,
			PullTimeout: pull, Guard: MinGuard(pull), Linger: linger, Overhead: 16, MaxFailures: 100,
		}),
	}
}

func randomPlan(r *rand.Rand, timeout time.Duration) plan {
	one := func(n int) bool { return r.IntN(n) == 0 }
	p := plan{cmd: Command{Kind: Kind(r.IntN(4)), Class: Class(r.IntN(2)), Timeout: timeout}}
	if one(2) {
		p.cmd.Kind = Write
	}
	if p.cmd.Kind == Read || p.cmd.Kind == Write {
		p.cmd.Length = uint32(r.IntN(4097))
	}
	p.cmd.Direct, p.cmd.Source = p.cmd.Kind == Read && one(3), p.cmd.Kind == Write && one(3)
	if one(16) {
		p.verdict = []Verdict{{RemoteAuth, BadKey}, {RemoteAuth, StaleEpoch}, {Outcome: Bounds}, {NACK, QueueFull}}[r.IntN(4)]
	}
	if one(16) {
		p.served = []Verdict{{RemoteAuth, BadKey}, {Outcome: RemoteError}, {NACK, Closing}}[r.IntN(3)]
	}
	if one(16) && !p.cmd.Direct {
		p.bad = true
	}
	if one(8) {
		p.copied = CopyResult(1 + r.IntN(3))
	}
	return p
}

// run takes random steps until nothing can happen any more.
func (s *schedule) run() error {
	for n := 0; ; n++ {
		if n > 5000 {
			return s.failure("it goes on for ever")
		}
		s.steps = s.world.steps(s.steps[:0])
		to, timed := s.time()
		var next step
		switch {
		case len(s.steps) == 0 && !timed:
			if fault := s.resting(); fault != "" {
				return s.failure("at rest: " + fault)
			}
			return nil
		case timed && (len(s.steps) == 0 || s.rand.IntN(s.quiet+1) == 0):
			next = pass(to)
		default:
			next = s.steps[s.rand.IntN(len(s.steps))]
			if rare := next.kind == stepCut || next.kind == stepJunk || next.kind == stepClose || next.kind == stepExpire || next.kind == stepRefuse; rare && len(s.steps) > 1 && s.rand.IntN(8) > 0 {
				continue
			}
		}
		s.way = append(s.way, next)
		s.do(next)
		if s.fault != "" {
			return s.failure(s.fault)
		}
	}
}

// time chooses how long time passes next: mostly until a timer runs out, or nearly so.
func (s *schedule) time() (time.Duration, bool) {
	var dues []time.Duration
	for role := range uint8(2) {
		if due, ok := s.deadline(role); ok {
			dues = append(dues, due.Sub(epoch))
		}
	}
	if len(dues) == 0 {
		return 0, false
	}
	to := dues[s.rand.IntN(len(dues))]
	switch s.rand.IntN(8) {
	case 0:
		to -= time.Nanosecond
	case 1:
		to += time.Duration(s.rand.IntN(int(20 * time.Millisecond)))
	case 2, 3:
		to = s.now + time.Duration(s.rand.IntN(int(10*time.Millisecond)))
	case 4: // the slower clock shows it only now
		to += to/time.Millisecond*500 + 1
	}
	if to <= s.now {
		to = s.now + time.Duration(1+s.rand.IntN(int(time.Millisecond)))
	}
	for _, k := range s.work {
		if k.kind == workCopying {
			to = min(to, k.until)
		}
	}
	return to, to > s.now
}

func (s *schedule) failure(what string) error {
	var b strings.Builder
	for _, s := range s.way {
		fmt.Fprintf(&b, "\n  %v", s)
	}
	return fmt.Errorf("%s, after%s\n%+v\n%+v\n%+v", what, b.String(), s.state, s.client.ops, s.server.records)
}

// TestRMA_19_NothingChangesAfterATimeout: in random schedules. After the outcome of a write the region
// does not change; each grant is returned once; each operation is completed once; no sink is used
// again while a Write may reach it; nothing is left when all timers have run out.
func TestRMA_19_NothingChangesAfterATimeout(t *testing.T) {
	const schedules = 100_000
	var wg sync.WaitGroup
	workers := uint64(runtime.GOMAXPROCS(0))
	failures := make([]error, workers)
	seen := make([]seen, workers)
	for n := range workers {
		wg.Go(func() {
			for seed := n; seed < schedules && failures[n] == nil; seed += workers {
				s := newSchedule(seed)
				if err := s.run(); err != nil {
					failures[n] = fmt.Errorf("seed %d: %w", seed, err)
				}
				seen[n].add(s.world)
			}
		})
	}
	wg.Wait()
	for _, err := range failures {
		require.NoError(t, err)
	}
	for _, s := range seen {
		s.check(t)
	}
}

// seen counts what has happened, because schedules in which nothing happens prove nothing.
type seen struct {
	outcomes         [Closed + 1]int
	late, latePulls  uint64
	expired, dropped uint64
	revoked          int // Revokes at both sides
	lost             int
}

func (n *seen) add(w *world) {
	for _, o := range w.ops[:w.posted] {
		n.outcomes[o.outcome]++
	}
	n.late, n.latePulls = n.late+w.client.stats.Late, n.latePulls+w.client.stats.LatePulls
	n.expired, n.dropped = n.expired+w.server.stats.Expired, n.dropped+w.server.stats.Late
	n.revoked += w.revokes
	n.lost += count(w.dead)
}

func (n *seen) check(t *testing.T) {
	t.Logf("%+v", *n)
	for o, times := range n.outcomes {
		require.Equal(t, Outcome(o) != Conflict, times > 100, o)
	}
	for _, times := range []uint64{n.late, n.latePulls, n.expired, n.dropped, uint64(n.revoked), uint64(n.lost)} {
		require.Greater(t, times, uint64(100))
	}
}
