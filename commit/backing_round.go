package commit

import (
	"context"
	"io/fs"
	"runtime"
	"sync"
)

// A round is one sync and those whom it serves. While one is running all who come make up
// the next. Who comes first, while none is, has the first one run, in Flush by himself. Those
// behind it are run by a goroutine of the group, which lasts while there are any: it has
// no disk to wait for but its own, and tells everybody of a round at once.
type round struct {
	wants   []Range
	users   int           // who wait for it, in Flush
	changed sync.Cond     // for them
	thens   []func(error) // of FlushThen
	ended   bool
	err     error
}

// An outcome is what is still to be told to one who does not wait.
type outcome struct {
	then func(error)
	err  error
}

// Flush makes n octets at off durable that were written before. The error is that of the
// backing. When a page of it could not be written, everything that was not yet
// durable is lost: Flush answers DataLost for it until it is written again, for the
// system has dropped it and would call the next sync a success. So are octets of which
// a WriteAt has failed.
func (g *group) Flush(ctx context.Context, off, n int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r, err := g.roundFor(Range{off, n})
	if r == nil {
		return err
	}
	if !g.busy {
		return g.lead(r)
	}
	r.users++
	return g.wait(ctx, r)
}

// lead runs r, the first round. Preconditions: g.mu is held, and nobody is at work.
func (g *group) lead(r *round) error {
	r.users++
	g.busy = true
	if g.commit() {
		g.passOn()
	}
	return g.leave(r)
}

// beginMost is how many octets who does not wait has the system begin to write himself: so
// few that it takes them at once.
const beginMost = 64 << 10

// FlushThen is Flush for who does not wait; see [Deferrer]. The
// system begins to write a little of it before it is handed over.
func (g *group) FlushThen(off, n int64, then func(error), run func(work func())) (pending bool, err error) {
	g.mu.Lock()
	r, err := g.roundFor(Range{off, n})
	first := !g.busy
	if r == nil {
		g.mu.Unlock()
		return false, err
	}
	r.thens = append(r.thens, then)
	g.busy = true
	g.mu.Unlock()
	if first {
		if g.begin != nil && n <= beginMost {
			g.begin(Range{off, n})
		}
		run(g.once)
	}
	return true, nil
}

// roundFor returns the round at whose end want is durable. nil: it is, or cannot be, as
// err says. Preconditions: g.mu is held.
func (g *group) roundFor(want Range) (r *round, err error) {
	if g.closed {
		return nil, fs.ErrClosed
	}
	if err := g.losses.told(want); err != nil {
		return nil, err
	}
	switch {
	case g.dirty.has(want):
		return g.join(want), nil
	case g.running != nil && g.taken.has(want):
		return g.running, nil
	}
	return nil, nil
}

// join adds want to the round that has not begun. Preconditions: g.mu is held.
func (g *group) join(want Range) *round {
	if g.next == nil {
		g.next = g.newRound()
	}
	g.next.wants = append(g.next.wants, want)
	return g.next
}

func (g *group) newRound() *round {
	if n := len(g.spare); n > 0 {
		r := g.spare[n-1]
		g.spare = g.spare[:n-1]
		r.wants, r.ended, r.err = r.wants[:0], false, nil
		return r
	}
	r := new(round)
	r.changed.L = &g.mu
	return r
}

// wait waits for r to end. Preconditions: g.mu is held.
func (g *group) wait(ctx context.Context, r *round) error {
	if !r.ended && ctx.Done() != nil {
		defer context.AfterFunc(ctx, func() { g.wake(r) })()
	}
	for !r.ended && ctx.Err() == nil {
		r.changed.Wait()
	}
	ended := r.ended
	err := g.leave(r)
	if !ended {
		err = ctx.Err()
	}
	return err
}

// leave returns the outcome of r, to one who does not wait for it any more. Preconditions:
// g.mu is held.
func (g *group) leave(r *round) error {
	err := r.err
	if r.users--; r.users > 0 {
		return err
	}
	switch {
	case r.ended:
		g.spare = append(g.spare, r)
	case g.next == r && len(r.thens) == 0: // nobody wants it any more
		g.next = nil
		g.spare = append(g.spare, r)
	}
	return err
}

// wake has those who wait for r look whether to wait on.
func (g *group) wake(r *round) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r.changed.Broadcast()
}

// commitOnce runs the first round.
func (g *group) commitOnce() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.commit() {
		g.passOn()
	}
}

// passOn has a goroutine run the rounds behind the first. Preconditions: g.mu is held.
func (g *group) passOn() {
	if g.next != nil {
		go g.steady()
		return
	}
	g.rest()
}

// commitAll runs rounds until nobody wants one.
func (g *group) commitAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.next != nil {
		if !g.commit() {
			return
		}
	}
	g.rest()
}

func (g *group) rest() {
	g.busy = false
	g.idle.Broadcast()
}

// commit runs the next round, if it is still wanted, and tells all that it serves. It
// reports whether the caller is still the committer: one who is alone, and has his answer,
// is soon back, and is then the first again. Preconditions: g.mu is held, and g.busy is the
// caller's; it is free meanwhile.
func (g *group) commit() (still bool) {
	g.gather()
	r := g.next
	if r == nil {
		return true
	}
	g.running, g.next = r, nil
	if g.wholesale {
		g.dirty.moveAll(&g.taken)
	} else {
		for _, w := range r.wants {
			g.dirty.take(w, &g.taken)
		}
	}
	g.ranges = g.taken.runs(g.ranges[:0])
	g.syncs++
	g.mu.Unlock()
	err := g.sync(g.ranges)
	g.mu.Lock()

	g.running = nil
	g.crowded = r.users+len(r.thens) > 1
	g.end(r, err)
	g.settle(err)
	still = g.crowded || g.next != nil
	g.busy = still
	g.tell()
	if !still {
		g.idle.Broadcast()
	}
	return still
}

// gather has everybody go first who could run now, where there are several who commit:
// those whom the last round has served come back, and the more share a sync the
// better. One who is alone does not wait. Preconditions: g.mu is held; it is free
// meanwhile.
func (g *group) gather() {
	if r := g.next; r != nil && (g.crowded || r.users+len(r.thens) > 1) {
		g.mu.Unlock()
		runtime.Gosched()
		g.mu.Lock()
	}
}

// settle judges what the running round had taken. Preconditions: g.mu is held.
func (g *group) settle(err error) {
	switch codeOf(err) {
	case OK:
		g.taken.clear()
	case DataLost:
		g.losses.synced(err)
		g.dirty.moveAll(&g.taken)
		g.ranges = g.taken.runs(g.ranges[:0])
		g.losses.octets.addAll(g.ranges)
		g.taken.clear()
		if r := g.next; r != nil { // what it was to sync is lost, too
			g.next = nil
			g.end(r, err)
		}
	default: // it may succeed another time
		g.taken.moveAll(&g.dirty)
	}
}

// end ends r. Preconditions: g.mu is held.
func (g *group) end(r *round, err error) {
	r.ended, r.err = true, err
	r.changed.Broadcast()
	for i, then := range r.thens {
		g.told = append(g.told, outcome{then, err})
		r.thens[i] = nil
	}
	r.thens = r.thens[:0]
	if r.users == 0 {
		g.spare = append(g.spare, r)
	}
}

// tell tells those who do not wait. While it does so the system may write already what the
// next sync is for, which is then shorter. Preconditions: g.mu is held; it is free
// meanwhile.
func (g *group) tell() {
	if len(g.told) == 0 {
		return
	}
	told, begins := g.told, g.begin != nil && g.next != nil
	g.told = nil
	g.telling++
	g.mu.Unlock()
	if begins {
		g.begin(Range{})
	}
	for i := range told {
		told[i].then(told[i].err)
	}
	g.mu.Lock()
	g.telling--
	clear(told)
	g.told = told[:0]
}
