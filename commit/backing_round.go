package commit

import (
	"context"
	"io/fs"
	"runtime"
)

// A round is one sync and the Flushes that it serves. While a round is running, all Flushes that
// arrive form the next one. The committer, a goroutine of the group, runs a round, and reports
// its outcome to all its Flushes. If Flushes wait for the next round, it leaves that round to another
// goroutine, and only then sends answers: sending may have to wait until those Flushes, or others of
// its own round, have ended.
type round struct {
	wants []Range
	thens []func(error) func()
	lost  error // why there is nothing to sync: begin has failed
}

// answers are the functions to call when all Flushes of a round know its outcome.
type answers struct{ list []func() }

// join adds a Flush.
func (r *round) join(want Range, then func(error) func()) {
	r.wants, r.thens = append(r.wants, want), append(r.thens, then)
}

// moveTo moves the Flushes of r to o.
func (r *round) moveTo(o *round) {
	o.wants, o.thens = append(o.wants, r.wants...), append(o.thens, r.thens...)
	r.clear()
}

func (r *round) clear() {
	clear(r.thens)
	r.wants, r.thens, r.lost = r.wants[:0], r.thens[:0], nil
}

// A waiter waits for a round.
type waiter struct {
	outcome chan error
	then    func(error) func()
}

func newWaiter() *waiter {
	w := &waiter{outcome: make(chan error, 1)}
	w.then = func(err error) func() {
		w.outcome <- err
		return nil
	}
	return w
}

// Flush makes the n octets at off durable that were written before. The error is that of the
// backing. If a page of the backing could not be written, everything that was not yet durable is
// lost: the system has dropped it, and would report the next sync as a success. Flush
// returns DataLost for such octets until they are written again, and also for octets whose
// WriteAt has failed. If ctx ends first Flush returns its error, and the octets may become
// durable later.
func (g *group) Flush(ctx context.Context, off, n int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := g.waiters.Get()
	first, pending, err := g.ask(Range{off, n}, w.then)
	if first {
		go g.committer()
	}
	if pending {
		select {
		case err = <-w.outcome:
		case <-ctx.Done():
			return ctx.Err() // w may still receive the outcome: it is not used again
		}
	}
	g.waiters.Put(w)
	return err
}

// beginMost limits the octets that flushThen asks the system to begin to write: so few
// that the system accepts them at once.
const beginMost = 64 << 10

// flushThen is Flush for a caller that must not wait. If there is nothing to wait for it
// returns false and the outcome. Otherwise it returns true, and then is called with the outcome:
// once, from another goroutine, perhaps before flushThen returns. then must not wait either; it
// returns a function for what may have to wait for other Flushes, which is called when it delays none.
//
// The system begins to write before the committer is started, and writes while the goroutine
// starts. Otherwise the Commit of a connection that waits for nothing else would be about 5 % slower.
func (g *group) flushThen(off, n int64, then func(error) func()) (pending bool, err error) {
	want := Range{off, n}
	first, pending, err := g.ask(want, then)
	if first {
		if g.begin != nil && n <= beginMost {
			g.next.lost = g.begin(want) // no round is running, and none can begin
		}
		go g.committer()
	}
	return pending, err
}

// ask arranges that then is called when want is durable. If want already is durable, or cannot be,
// as err says, pending is false. If first is true the caller must start the committer.
func (g *group) ask(want Range, then func(error) func()) (first, pending bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false, false, fs.ErrClosed
	}
	if err := g.losses.told(want); err != nil {
		return false, false, err
	}
	switch {
	case g.dirty.has(want):
		g.next.join(want, then)
	case g.taken.has(want):
		g.running.join(want, then)
	default:
		return false, false, nil
	}
	first = !g.busy
	g.busy = true
	return first, true, nil
}

// runOne runs one round, and leaves later rounds to another goroutine, even if Sync ends this one.
func (g *group) runOne() {
	var err error
	defer func() {
		a := g.commit(err)
		for _, answer := range a.list {
			answer()
		}
		clear(a.list)
		a.list = a.list[:0]
		g.answers.Put(a)
	}()
	if err = g.begins(); err == nil {
		err = errUnfinished
		err = g.sync(g.ranges)
	}
}

// begins makes the next round the running one, for which g.ranges must be synced, or returns why there is nothing
// to sync. Preconditions: the caller is the committer.
func (g *group) begins() (lost error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gather()
	g.running, g.next = g.next, g.running
	if g.wholesale {
		g.dirty.moveAll(&g.taken)
	} else {
		for _, w := range g.running.wants {
			g.dirty.take(w, &g.taken)
		}
	}
	if lost = g.running.lost; lost == nil {
		g.ranges = g.taken.runs(g.ranges[:0])
		g.syncs++
	}
	return lost
}

// commit reports the outcome of the running round to its Flushes, and ends the committer. It returns the
// answers. Preconditions: the caller is the committer.
func (g *group) commit(err error) *answers {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.contended = len(g.running.thens) > 1
	g.settle(err)
	g.mu.Unlock()
	a := g.tell(err)
	g.mu.Lock()
	g.running.clear()
	if len(g.next.thens) > 0 {
		go g.committer()
	} else {
		g.busy = false
		g.idle.Broadcast()
	}
	return a
}

// tell reports the outcome of the running round to its Flushes. The set of taken chunks is empty, so no Flush
// joins any more.
func (g *group) tell(err error) *answers {
	a := g.answers.Get()
	for _, then := range g.running.thens {
		if answer := then(err); answer != nil {
			a.list = append(a.list, answer)
		}
	}
	return a
}

// gather lets all ready goroutines run first, if several Flushes come at a time: callers that
// the last round served come back, and the more Flushes share a sync the better. A single
// Flush does not wait. Preconditions: g.mu is held; gather releases it meanwhile.
func (g *group) gather() {
	if g.contended || len(g.next.thens) > 1 {
		g.mu.Unlock()
		runtime.Gosched()
		g.mu.Lock()
	}
}

// settle marks what the running round had taken as durable, lost or dirty. Preconditions: g.mu is held.
func (g *group) settle(err error) {
	switch {
	case err == nil:
		g.taken.clear()
	case loses(err):
		g.losses.synced(err)
		g.dirty.moveAll(&g.taken)
		g.ranges = g.taken.runs(g.ranges[:0])
		for _, r := range g.ranges {
			g.losses.octets.add(r)
		}
		g.taken.clear()
		g.next.moveTo(&g.running) // what the next round was to sync is lost, too
	default: // the next sync may succeed
		g.taken.moveAll(&g.dirty)
	}
}
