package soliciting

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/solicit"
)

// A turnsWorld consists of turns and the queue pairs that use them. Whatever may happen to a queue pair is one step.
// Steps come in any order, except within what one lock protects.
type turnsWorld struct {
	start *turnsStart
	turns turns
	now   time.Time
	qps   []*modelQP
	ticks int // that are left
	fails int // likewise
	waits int // that began
	fault string
}

// A modelQP is a queue pair with Reads to start, in order.
type modelQP struct {
	place    place
	next     int      // of its Reads
	outcome  []string // of those that have started or were skipped
	inFlight []uint64 // grants, oldest first
	began    int      // how many waits have begun
	due      bool     // its stream is about to ask
	kicked   bool     // a goroutine is about to make its stream ask
	failed   bool     // it is ending, and has left the queue
	ended    bool     // all its Reads are completed
}

// A turnsStart is the initial state of a world.
type turnsStart struct {
	cfg   solicit.Config
	reads [][]uint64 // sizes, for each queue pair
	class []solicit.Class
	ticks int // of one second
	fails int
}

// The steps. The number of the queue pair is added to them.
const (
	stepAsk    = 10 * iota
	stepKick   // the goroutine that kicks does so
	stepAnswer // the oldest Read in flight completes
	stepFail   // the queue pair begins to end
	stepEnd    // it has ended
	stepTick
	stepTimer
)

var turnsEpoch = time.Unix(1_000_000, 0)

func (s *turnsStart) world() *turnsWorld {
	w := &turnsWorld{start: s, now: turnsEpoch, ticks: s.ticks, fails: s.fails}
	w.turns = turns{window: solicit.New(s.cfg, w.now), waiting: make(map[uint64]*place)}
	for range s.reads {
		w.qps = append(w.qps, &modelQP{due: true})
	}
	return w
}

func (w *turnsWorld) steps() (can []int) {
	for i, q := range w.qps {
		if q.due && q.next < len(w.start.reads[i]) {
			can = append(can, stepAsk+i)
		}
		if q.kicked {
			can = append(can, stepKick+i)
		}
		if len(q.inFlight) > 0 && !q.failed {
			can = append(can, stepAnswer+i)
		}
		if !q.failed && w.fails > 0 {
			can = append(can, stepFail+i)
		}
		if q.failed && !q.ended {
			can = append(can, stepEnd+i)
		}
	}
	if w.ticks > 0 {
		can = append(can, stepTick)
	}
	if at, ok := w.turns.window.Deadline(); ok && !at.After(w.now) {
		can = append(can, stepTimer)
	}
	return can
}

// step takes a step, and kicks the places that must be kicked.
func (w *turnsWorld) step(s int) {
	w.happens(s)
	for _, p := range w.turns.kicks {
		q := w.qps[slices.IndexFunc(w.qps, func(q *modelQP) bool { return &q.place == p })]
		if q.kicked || p.at == gone {
			w.fault = "kicked twice, or too late"
		}
		q.kicked = true
	}
	w.turns.kicks = nil
}

func (w *turnsWorld) happens(s int) {
	switch s {
	case stepTick:
		w.ticks--
		w.now = w.now.Add(time.Second)
		return
	case stepTimer:
		w.turns.expire(w.now)
		return
	}
	i := s % 10
	q := w.qps[i]
	switch s - i {
	case stepAsk:
		w.ask(i, q)
	case stepKick:
		q.kicked = false
		q.due = !q.ended
	case stepAnswer:
		w.turns.release(w.now, []ended{{q.inFlight[0], solicit.OK}})
		q.inFlight = q.inFlight[1:]
		q.due = true // the receiving goroutine looks for more to send
	case stepFail:
		w.fails--
		q.failed = true
		w.turns.leave(w.now, &q.place)
	case stepEnd:
		var back []ended
		for _, g := range q.inFlight {
			back = append(back, ended{g, solicit.Failed})
		}
		w.turns.release(w.now, back)
		w.turns.leave(w.now, &q.place)
		q.inFlight, q.due, q.ended = nil, false, true
	}
}

func (w *turnsWorld) ask(i int, q *modelQP) {
	answer, grant := w.turns.ask(w.now, &q.place, w.start.class[i], w.start.reads[i][q.next])
	switch answer {
	case rdmap.Go:
		q.inFlight = append(q.inFlight, grant)
		q.outcome = append(q.outcome, "go")
		q.next++
	case rdmap.Skip:
		q.outcome = append(q.outcome, "skip")
		q.next++
	default:
		if q.due = false; q.place.at == waiting && q.began == 0 {
			w.waits++
			q.began = w.waits
		}
		return
	}
	q.began = 0
}

// state identifies all differences between worlds.
func (w *turnsWorld) state() string {
	s := fmt.Sprint(w.ticks, w.fails, w.turns.window.Stats().Granted)
	for _, q := range w.qps {
		s += fmt.Sprint(" | ", q.place.at, q.outcome, len(q.inFlight), q.due, q.kicked, q.failed, q.ended)
		if q.place.at == waiting {
			s += fmt.Sprint(" ", w.now.Sub(q.place.since))
		}
	}
	return s + fmt.Sprint(w.order())
}

// order returns the order in which the places wait.
func (w *turnsWorld) order() (qps []int) {
	for i, q := range w.qps {
		if q.place.at == waiting {
			qps = append(qps, i)
		}
	}
	slices.SortFunc(qps, func(a, b int) int { return w.qps[a].began - w.qps[b].began })
	return qps
}

// check returns what is wrong with the state.
func (w *turnsWorld) check(can []int) string {
	stats := w.turns.window.Stats()
	var held int64
	waits := 0
	for i, q := range w.qps {
		for k := range q.inFlight {
			held += int64(w.start.reads[i][w.started(i, len(q.inFlight)-k)])
		}
		switch q.place.at {
		case granted:
			held += int64(w.start.reads[i][q.next])
		case waiting:
			waits++
			if w.turns.waiting[q.place.entry] != &q.place {
				return fmt.Sprintf("QP %d waits, and is not found", i)
			}
		case idle, expired, gone:
		}
	}
	switch {
	case w.fault != "":
		return w.fault
	case held != stats.Granted:
		return fmt.Sprintf("%d octets are held, %d are granted", held, stats.Granted)
	case stats.Granted > stats.Limit || stats.MaxGranted > w.start.cfg.Fixed:
		return fmt.Sprintf("%d octets are granted, %d at most", stats.Granted, stats.Limit)
	case waits != len(w.turns.waiting):
		return fmt.Sprintf("%d wait, %d are found", waits, len(w.turns.waiting))
	case stats.Unidentified > 0:
		return "a grant was given back twice"
	}
	if fault := w.stuck(can); fault != "" || slices.Contains(can, stepTimer) {
		return fault
	}
	if g, ok := w.turns.window.Next(w.now); ok { // this world is not used afterwards
		return fmt.Sprintf("an entry of %d octets waits, and would fit", g.N)
	}
	return ""
}

// started returns the index of the Read that was started n-th from the end.
func (w *turnsWorld) started(i, n int) int {
	q := w.qps[i]
	for k := len(q.outcome) - 1; ; k-- {
		if q.outcome[k] == "go" {
			if n--; n == 0 {
				return k
			}
		}
	}
}

// stuck reports a Read that does not start although nothing else can happen.
func (w *turnsWorld) stuck(can []int) string {
	for _, s := range can {
		if s < stepFail || s >= stepEnd && s < stepTick || s == stepTimer {
			return ""
		}
	}
	for i, q := range w.qps {
		if !q.ended && q.next < len(w.start.reads[i]) {
			return fmt.Sprintf("QP %d is stuck at Read %d", i, q.next)
		}
	}
	if g := w.turns.window.Stats().Granted; g != 0 {
		return fmt.Sprintf("%d octets are never given back", g)
	}
	return ""
}

// explore visits each reachable state, nearest first, and checks it. It returns the number of states, and the
// greatest number of Reads that expired.
func (s *turnsStart) explore(t *testing.T) (states, skips int) {
	seen := map[string]bool{s.world().state(): true}
	for todo := [][]int{nil}; len(todo) > 0; todo = todo[1:] {
		path := todo[0]
		w := s.world()
		for _, step := range path {
			w.step(step)
		}
		can := w.steps()
		require.Empty(t, w.check(can), "after %v: %s", path, w.state())
		skips = max(skips, int(w.turns.window.Stats().Expired))
		for _, step := range can {
			x := s.world()
			for _, p := range path {
				x.step(p)
			}
			x.step(step)
			if at := x.state(); !seen[at] {
				seen[at] = true
				todo = append(todo, append(slices.Clone(path), step))
			}
		}
	}
	return len(seen), skips
}

// TestSOL_21_EveryOrderOfEvents: a queue pair is granted, waits, ends, or is kicked, in every possible
// order. No grant is lost or returned twice, and while there is room no Read is left waiting.
func TestSOL_21_EveryOrderOfEvents(t *testing.T) {
	const l, b = solicit.Latency, solicit.Bulk
	for what, s := range map[string]*turnsStart{
		"one at a time": {
			cfg: solicit.Config{Fixed: 100}, fails: 1,
			reads: [][]uint64{{100, 100}, {100, 100}, {100}}, class: []solicit.Class{l, l, l},
		},
		"a large one between small ones": {
			cfg: solicit.Config{Fixed: 200}, fails: 2,
			reads: [][]uint64{{100, 100}, {200}, {100, 100}}, class: []solicit.Class{l, l, l},
		},
		"two classes": {
			cfg: solicit.Config{Fixed: 200, Strict: true}, fails: 1,
			reads: [][]uint64{{100, 200}, {200}, {100, 100}}, class: []solicit.Class{l, b, b},
		},
		"waits that last too long": {
			cfg: solicit.Config{Fixed: 200, Dispatch: [2]time.Duration{1500 * time.Millisecond, 0}}, fails: 1, ticks: 3,
			reads: [][]uint64{{200}, {200}, {100, 100}}, class: []solicit.Class{b, l, l},
		},
	} {
		t.Run(what, func(t *testing.T) {
			states, skips := s.explore(t)
			t.Log(states, "states,", skips, "Reads expired at most")
			require.Greater(t, states, 100)
			require.Equal(t, s.ticks > 0, skips > 0)
		})
	}
}
