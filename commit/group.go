package commit

import (
	"context"
	"io/fs"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp/stag"
)

// A Flusher makes a range durable.
type Flusher = stag.Flusher

// A Prompter is a Flusher that can tell whether a Flush would wait for nothing: it is then
// called by who receives, which is faster than a goroutine of its own.
type Prompter interface {
	Flusher
	Prompt(off, n int64) bool
}

// A group commits for all who write to one backing: it knows what was written since it
// was durable, and one sync serves everybody who came before it began. Whoever comes
// first while no sync is running runs it; the others wait, and one of them runs the next.
type group struct {
	// sync makes the chunks of ranges durable, or everything.
	sync func(ranges []Range) error
	// wholesale: sync makes everything durable, whatever it is asked for.
	wholesale bool
	// cheap is how many octets it takes no longer to sync than to start a goroutine.
	cheap int64

	dirty  chunks        // written since a sync was begun for them
	lost   chunks        // what the backing has of them is not known: a sync or a write has failed
	loss   atomic.Bool   // there has been a lost chunk
	losses atomic.Uint64 // syncs that have failed like that

	mu      sync.Mutex
	idle    sync.Cond // neither running nor next may be left
	running *round
	next    *round // that waits for the running one to end
	gathers bool   // whoever is to run next lets others come first
	crowded bool   // the last round had several users
	spare   []*round
	why     error   // of the last loss, for who asks for what was lost
	mended  Range   // written in one run since then: segments may be shorter than chunks
	taken   chunks  // what the running round makes durable
	ranges  []Range // of taken
	syncs   uint64
	closed  bool
}

// A round is one sync and those whom it serves.
type round struct {
	wants   []Range
	users   int       // who wait for it
	changed sync.Cond // it has ended, or may be run
	ended   bool
	err     error
}

func newGroup(size int64, wholesale bool, sync func([]Range) error) *group {
	g := &group{
		sync: sync, wholesale: wholesale,
		dirty: newChunks(size), lost: newChunks(size), taken: newChunks(size),
	}
	g.idle.L = &g.mu
	return g
}

// began is the moment at which a write begins; see wrote.
func (g *group) began() (losses uint64) { return g.losses.Load() }

// wrote tells of a write that has ended. Octets that were lost are as new if they were
// written since. If a sync has failed meanwhile, nobody knows whether they were among those
// that it has dropped, and so they are lost, too; and so they are if the backing could not
// take them, which err says.
func (g *group) wrote(began uint64, off int64, n int, err error) {
	r := Range{off, int64(n)}
	g.dirty.add(r)
	if err == nil && !g.loss.Load() {
		return // a sync that fails from now on finds them dirty
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil && g.losses.Load() == began {
		g.mended.extend(r)
		g.lost.removeWhole(g.mended)
		return
	}
	g.lose(err)
	g.lost.add(r)
}

// lose notes why octets are lost, for who asks for them. Preconditions: g.mu is held.
func (g *group) lose(err error) {
	g.loss.Store(true)
	g.mended = Range{}
	g.why = ErrDataLost
	switch c := codeOf(err); c {
	case OK:
	case ReadOnly:
		g.why = &Error{MakeStatus(NoRegion, c), err}
	default:
		g.why = &Error{MakeStatus(NoRegion, DataLost), err}
	}
}

// Failed is told of a peer's RDMA Write that the backing could not take. WriteAt knows of
// it already; what is left to say is that it need not end the stream: the next Flush of
// those octets fails, until they are written again.
func (g *group) Failed(off, n int64, err error) {}

// Prompt reports whether n octets at off are durable, or cheap to make so.
func (g *group) Prompt(off, n int64) bool {
	if n <= g.cheap {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	want := Range{off, n}
	return !g.dirty.has(want) && (g.running == nil || !g.taken.has(want))
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
	want := Range{off, n}
	switch {
	case g.closed:
		return fs.ErrClosed
	case g.loss.Load() && g.lost.has(want):
		return g.why
	case g.dirty.has(want):
		return g.serve(ctx, g.join(want))
	case g.running != nil && g.taken.has(want):
		g.running.users++
		return g.serve(ctx, g.running)
	}
	return nil
}

// join adds want to the round that has not begun. Preconditions: g.mu is held.
func (g *group) join(want Range) *round {
	if g.next == nil {
		g.next = g.newRound()
	}
	g.next.wants = append(g.next.wants, want)
	g.next.users++
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

// serve waits for r to end, and runs it if nobody else does. Preconditions: g.mu is held.
func (g *group) serve(ctx context.Context, r *round) error {
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, func() { g.wake(r) })()
	}
	for !r.ended && ctx.Err() == nil {
		if g.mayRun(r) {
			g.gather(r)
			g.run(r)
			break
		}
		r.changed.Wait()
	}
	err := r.err
	if !r.ended {
		err = ctx.Err()
	}
	if r.users--; r.users == 0 {
		g.retire(r)
	} else if g.mayRun(r) { // it was for us to do
		r.changed.Signal()
	}
	return err
}

func (g *group) mayRun(r *round) bool { return g.next == r && g.running == nil && !g.gathers }

// gather has everybody go first who could run now, where there are several who commit:
// those whom the last round has served come back, and the more share a sync the
// better. One who is alone does not wait. Preconditions: g.mu is held; it is free
// meanwhile.
func (g *group) gather(r *round) {
	if g.crowded || r.users > 1 {
		g.gathers = true
		g.mu.Unlock()
		runtime.Gosched()
		g.mu.Lock()
		g.gathers = false
	}
	g.crowded = r.users > 1
}

// retire keeps r, whom nobody waits for any more, for use as another.
func (g *group) retire(r *round) {
	if g.next == r {
		g.next = nil
		g.idle.Broadcast()
	}
	if g.running != r {
		g.spare = append(g.spare, r)
	}
}

// wake has those who wait for r look whether to wait on.
func (g *group) wake(r *round) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r.changed.Broadcast()
}

// run is the sync. Preconditions: g.mu is held; it is free during the sync.
func (g *group) run(r *round) {
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

	g.running, r.ended, r.err = nil, true, err
	r.changed.Broadcast()
	g.settle(err)
	if g.next != nil {
		g.next.changed.Signal()
	} else {
		g.idle.Broadcast()
	}
}

// settle judges what the running round had taken. Preconditions: g.mu is held.
func (g *group) settle(err error) {
	switch codeOf(err) {
	case OK:
		for w := range g.taken.words {
			g.taken.words[w].Store(0)
		}
	case DataLost:
		g.losses.Add(1)
		g.lose(err)
		g.taken.moveAll(&g.lost)
		g.dirty.moveAll(&g.lost)
		if r := g.next; r != nil { // what it was to sync is lost, too
			g.next, r.ended, r.err = nil, true, err
			r.changed.Broadcast()
		}
	default: // it may succeed another time
		g.taken.moveAll(&g.dirty)
	}
}

// close lets no more Flush begin, and waits for those that have.
func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for g.running != nil || g.next != nil {
		g.idle.Wait()
	}
}

// Syncs returns how many syncs there were.
func (g *group) Syncs() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.syncs
}
