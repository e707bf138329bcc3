package op

import (
	"fmt"
	"hash/maphash"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// unit is the time that passes in one step of an exploration.
const unit = 10 * time.Millisecond

// clone returns a world with the same state.
func (w *world) clone() *world {
	c, s := *w.client, *w.server
	c.slots, c.free = slices.Clone(c.slots), append(make([]uint16, 0, len(c.slots)), c.free...)
	c.ops, c.unused = slices.Clone(c.ops), append(make([]int32, 0, len(c.ops)), c.unused...)
	s.records, s.unused = slices.Clone(s.records), append(make([]int32, 0, len(s.records)), s.unused...)
	return &world{state: w.state, client: &c, server: &s}
}

// sum returns a number for the state: different states have different numbers.
func (w *world) sum(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, p := range []*packets{&w.up, &w.down, &w.heard[0], &w.heard[1]} {
		maphash.WriteComparable(&h, p.n)
		for _, k := range p.list[:p.n] {
			maphash.WriteComparable(&h, k)
		}
	}
	for _, k := range w.work {
		if k.kind != noWork {
			maphash.WriteComparable(&h, k)
		}
	}
	maphash.WriteComparable(&h, w.grants)
	maphash.WriteComparable(&h, w.sinks)
	maphash.WriteComparable(&h, w.ops)
	maphash.WriteComparable(&h, [4]uint8{w.came[0], w.came[1], w.read[0], w.read[1]})
	maphash.WriteComparable(&h, [8]bool{w.dead, w.ended, w.lost[0], w.lost[1], w.closed[0], w.closed[1], w.junked[0], w.junked[1]})
	maphash.WriteComparable(&h, [4]time.Duration{w.now, w.client.clock.next, w.server.clock.next, w.server.failures.used})
	maphash.WriteComparable(&h, [2]phase{w.client.phase, w.server.phase})
	maphash.WriteComparable(&h, w.client.waiting)
	writeAll(&h, w.client.slots)
	writeAll(&h, w.client.ops)
	writeAll(&h, w.client.free)
	writeAll(&h, w.client.unused)
	writeAll(&h, w.server.records)
	writeAll(&h, w.server.unused)
	return h.Sum64()
}

func writeAll[T comparable](h *maphash.Hash, list []T) {
	for _, v := range list {
		maphash.WriteComparable(h, v)
	}
}

// An exploration visits each reachable state.
type exploration struct {
	seed   maphash.Seed
	seen   map[uint64]struct{}
	steps  []step // on the path to the current state
	atRest int
	limit  int
}

// visit visits a world and all its successors, depth first.
func (x *exploration) visit(w *world) error {
	sum := w.sum(x.seed)
	if _, ok := x.seen[sum]; ok {
		return nil
	}
	x.seen[sum] = struct{}{}
	if len(x.seen) > x.limit {
		return fmt.Errorf("more than %d states", x.limit)
	}
	steps := w.steps(nil)
	if x.timers(w) {
		if to := w.now + unit; w.mayPass(to) {
			steps = append(steps, pass(to))
		}
	}
	if len(steps) == 0 {
		x.atRest++
		return x.fault(w, w.resting())
	}
	for i, s := range steps {
		next := w
		if i < len(steps)-1 {
			next = w.clone()
		}
		next.do(s)
		x.steps = append(x.steps, s)
		if err := x.fault(next, next.fault); err != nil {
			return err
		}
		if err := x.visit(next); err != nil {
			return err
		}
		x.steps = x.steps[:len(x.steps)-1]
	}
	return nil
}

func (x *exploration) timers(w *world) bool {
	_, client := w.deadline(atClient)
	_, server := w.deadline(atServer)
	return client || server
}

func (x *exploration) fault(w *world, what string) error {
	if what == "" {
		return nil
	}
	var b strings.Builder
	for _, s := range x.steps {
		fmt.Fprintf(&b, "\n  %v", s)
	}
	return fmt.Errorf("%s, after%s\n%+v\n%+v", what, b.String(), w.client.ops, w.server.records)
}

// A scenario bounds an exploration. Long scenarios are explored only if IWARP_EXPLORE is set.
type scenario struct {
	name    string
	long    bool
	plans   []plan
	credits int
	linger  time.Duration
	params  params
}

var (
	aRead    = plan{cmd: Command{Kind: Read, Length: 100}}
	aDirect  = plan{cmd: Command{Kind: Read, Length: 100, Direct: true}}
	aPut     = plan{cmd: Command{Kind: Write, Length: 100}}
	aSource  = plan{cmd: Command{Kind: Write, Length: 100, Source: true}}
	anUnsent = plan{cmd: aPut.cmd, unsent: true}
	anOpen   = plan{cmd: Command{Kind: Open}}
	aRekey   = plan{cmd: Command{Kind: Rekey}}
)

func explore(t *testing.T, s scenario) (*exploration, error) {
	t.Helper()
	p := s.params
	p.n, p.lateness = len(s.plans), unit
	for i, o := range s.plans {
		o.cmd.Timeout = unit
		p.plans[i] = o
	}
	dispatch := [2]time.Duration{unit, unit}
	w := newWorld(p, ClientConfig{
		Slots: len(s.plans), Credits: s.credits, Dispatch: dispatch, PullTimeout: unit, Guard: MinGuard(unit), Linger: s.linger,
	}, ServerConfig{
		Credits: s.credits, Records: 2 * s.credits, Queue: s.credits, MaxOp: 4096, Dispatch: dispatch,
		PullTimeout: unit, Guard: MinGuard(unit), Linger: s.linger, MaxFailures: 100,
	})
	x := &exploration{seed: maphash.MakeSeed(), seen: make(map[uint64]struct{}), limit: 20_000_000}
	err := x.visit(w)
	t.Logf("%d states, %d at rest", len(x.seen), x.atRest)
	return x, err
}

// TestRMA_19_InEachState explores everything that can happen in small cases.
func TestRMA_19_InEachState(t *testing.T) {
	cuts, junk := params{cuts: true}, params{junk: [2]bool{atClient: true}}
	for _, s := range []scenario{
		{name: "a read", plans: []plan{aRead}, credits: 1, linger: unit, params: params{cuts: true, window: true, closes: true}},
		{name: "a read without linger", plans: []plan{aRead}, credits: 1, params: cuts},
		{name: "a direct read", plans: []plan{aDirect}, credits: 1, linger: unit, params: cuts},
		{name: "a write", plans: []plan{aPut}, credits: 1, linger: unit, params: cuts},
		{name: "a write without linger", plans: []plan{aPut}, credits: 1, params: cuts},
		{name: "a write, and the ends of windows and sides", plans: []plan{aPut}, credits: 1, linger: unit, params: params{window: true, closes: true}},
		{name: "a write of a source", plans: []plan{aSource}, credits: 1, linger: unit, params: cuts},
		{name: "a write of a source, and junk", plans: []plan{aSource}, credits: 1, linger: unit, params: junk},
		{name: "an open", plans: []plan{anOpen}, credits: 1, linger: unit, params: cuts},
		{name: "a rekey", plans: []plan{aRekey}, credits: 1, linger: unit, params: cuts},
		{name: "a damaged write", plans: []plan{{cmd: aPut.cmd, bad: true}}, credits: 1, linger: unit},
		{name: "a write without memory", plans: []plan{anUnsent}, credits: 1, linger: unit, params: cuts},
		{name: "a write without memory, and one with it", plans: []plan{anUnsent, aPut}, credits: 1, linger: unit},
		{name: "two reads, one credit", plans: []plan{aRead, aRead}, credits: 1},
		{name: "two reads, one credit, and the end", plans: []plan{aRead, aRead}, credits: 1, linger: unit, params: cuts},
		{name: "two writes, one credit", long: true, plans: []plan{aPut, aPut}, credits: 1, linger: unit, params: cuts},
		{name: "a read and a write", long: true, plans: []plan{aRead, aPut}, credits: 2, linger: unit},
	} {
		if s.long && os.Getenv("IWARP_EXPLORE") == "" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			_, err := explore(t, s)
			require.NoError(t, err)
		})
	}
}
