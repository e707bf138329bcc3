package commit

import (
	"context"
	"io/fs"
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
	ended   sync.Cond // a round has ended
	running *round
	next    *round // that waits for the running one to end
	spare   []*round
	taken   chunks  // what the running round makes durable
	ranges  []Range // of taken
	syncs   uint64
	closed  bool
}

// A round is one sync and those whom it serves.
type round struct {
	wants []Range
	users int // who wait for it
	ended bool
	err   error
}

func newGroup(size int64, wholesale bool, sync func([]Range) error) *group {
	g := &group{
		sync: sync, wholesale: wholesale,
		dirty: newChunks(size), lost: newChunks(size), taken: newChunks(size),
	}
	g.ended.L = &g.mu
	return g
}

// began is the moment at which a write begins; see wrote.
func (g *group) began() (losses uint64) { return g.losses.Load() }

// wrote tells of a write that has ended. Octets that were lost are as new if they were
// written since. If a sync has failed meanwhile, nobody knows whether they were among those
// that it has dropped, and so they are lost, too.
func (g *group) wrote(began uint64, off int64, n int, err error) {
	r := Range{off, int64(n)}
	g.dirty.add(r)
	if err == nil && !g.loss.Load() {
		return // a sync that fails from now on finds them dirty
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil && g.losses.Load() == began {
		g.lost.removeWhole(r)
		return
	}
	g.loss.Store(true)
	g.lost.add(r)
}

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
		return ErrDataLost
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
		*r = round{wants: r.wants[:0]}
		return r
	}
	return new(round)
}

// serve waits for r to end, and runs it if nobody else does. Preconditions: g.mu is held.
func (g *group) serve(ctx context.Context, r *round) error {
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, g.wake)()
	}
	for !r.ended && ctx.Err() == nil {
		if g.running == nil && g.next == r {
			g.run(r)
			break
		}
		g.ended.Wait()
	}
	err := r.err
	if !r.ended {
		err = ctx.Err()
	}
	if r.users--; r.users == 0 {
		g.retire(r)
	}
	return err
}

// retire keeps r, whom nobody waits for any more, for use as another.
func (g *group) retire(r *round) {
	if g.next == r {
		g.next = nil
		g.ended.Broadcast() // for close
	}
	if g.running != r {
		g.spare = append(g.spare, r)
	}
}

// wake has everybody look whether to wait on.
func (g *group) wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended.Broadcast()
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
	g.settle(err)
	g.ended.Broadcast()
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
		g.loss.Store(true)
		g.taken.moveAll(&g.lost)
		g.dirty.moveAll(&g.lost)
		if r := g.next; r != nil { // what it was to sync is lost, too
			g.next, r.ended, r.err = nil, true, err
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
		g.ended.Wait()
	}
}

// Syncs returns how many syncs there were.
func (g *group) Syncs() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.syncs
}
