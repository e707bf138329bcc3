package commit

import (
	"errors"
	"sync"

	"github.com/goiwarp/iwarp/internal/freelist"
	"github.com/goiwarp/iwarp/stag"
)

// A Flusher makes a range durable.
type Flusher = stag.Flusher

// An asyncFlusher is a backing, which need not be waited for: see group.flushThen. One
// goroutine then answers all Commits of a sync. To wake a goroutine for each of them takes a
// tenth of the processor time of 64 connections.
type asyncFlusher interface {
	flushThen(off, n int64, then func(error) func()) (pending bool, err error)
}

// A group commits for all that write to one backing: it knows what was written since it
// was durable, and one sync serves all Flushes that came before it began. See round.
type group struct {
	// sync makes the chunks of ranges durable, or everything.
	sync func(ranges []Range) error
	// begin makes the system begin to write what is dirty of a range, without waiting for it. If it
	// fails octets are lost, and the round fails: sync may not report that. nil: it would not help.
	begin func(Range) error
	// wholesale: sync makes everything durable, whatever it is asked for.
	wholesale bool

	dirty chunks // written since a sync was begun for them

	waiters   freelist.List[waiter] // spare ones
	answers   freelist.List[answers]
	committer func() // runOne, made once

	mu        sync.Mutex
	losses    losses
	busy      bool      // there is a committer, or one is being started
	idle      sync.Cond // busy has ended
	running   round
	next      round   // that waits for the running one to end
	contended bool    // several Flushes have waited for the last round
	taken     chunks  // what the running round makes durable
	ranges    []Range // of taken
	syncs     uint64
	closed    bool
}

// spareWaiters is how many waiters stay for good.
const spareWaiters = 16

// spareAnswers is the same of answers: those of a round that are sent, and those of the next.
const spareAnswers = 2

func newGroup(size int64, wholesale bool, sync func([]Range) error) *group {
	g := &group{
		sync: sync, wholesale: wholesale,
		dirty: newChunks(size), taken: newChunks(size),
	}
	g.idle.L = &g.mu
	g.waiters.Retain, g.waiters.New = spareWaiters, newWaiter
	g.answers.Retain, g.answers.New = spareAnswers, func() *answers { return new(answers) }
	g.committer = g.runOne
	return g
}

// began is the moment at which a write begins; see losses.
func (g *group) began() (losses uint64) { return g.losses.began() }

var errOutside = errors.New("commit: a write outside of the octets of the backing")

// wrote tells of a write that has ended, with err. Octets outside of the backing are lost: no sync is for
// them.
func (g *group) wrote(began uint64, off, n int64, err error) {
	r := Range{off, n}
	g.dirty.add(r)
	if err == nil && (off < 0 || n > g.dirty.size-off) {
		err = errOutside
	}
	if err == nil && !g.losses.ever.Load() {
		return // a sync that fails from now on finds them dirty
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dirty.add(r) // again: a round that has failed meanwhile may have taken them for what it has lost
	g.losses.wrote(began, r, err)
}

// Failed is told of a peer's RDMA Write that the backing could not take. WriteAt knows of
// it already; what is left to say is that it need not end the stream: the next Flush of
// those octets fails, until they are written again.
func (g *group) Failed(off, n int64, err error) {}

// close lets no more Flush begin, and waits for those that have.
func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for g.busy {
		g.idle.Wait()
	}
}

// Syncs returns how many syncs there were.
func (g *group) Syncs() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.syncs
}
