package commit

import (
	"errors"
	"sync"

	"github.com/goiwarp/iwarp/internal/freelist"
	"github.com/goiwarp/iwarp/stag"
)

// A Flusher makes a range durable.
type Flusher = stag.Flusher

// An asyncFlusher is a backing that no goroutine need wait for: see group.flushThen. One
// goroutine then answers all Commits of a sync. Waking a goroutine for each of them would take
// a tenth of the processor time of 64 connections.
type asyncFlusher interface {
	flushThen(off, n int64, then func(error) func()) (pending bool, err error)
}

// A group commits for all writers of one backing: it records what was written and is not yet
// durable, and one sync serves all Flushes that came before it began. See round.
type group struct {
	// sync makes the chunks of ranges durable, or everything.
	sync func(ranges []Range) error
	// begin makes the system begin to write the dirty octets of a range, without waiting. If it fails,
	// octets are lost, and the round fails: sync may not report the loss. nil: it would not help.
	begin func(Range) error
	// wholesale: sync makes everything durable, whatever its ranges are.
	wholesale bool

	dirty chunks // written since the last sync of them began

	waiters   freelist.List[waiter] // spare ones
	answers   freelist.List[answers]
	committer func() // runOne, made once

	mu        sync.Mutex
	losses    losses
	busy      bool      // a committer is running or being started
	idle      sync.Cond // busy has ended
	running   round
	next      round   // waits until the running round has ended
	contended bool    // several Flushes waited for the last round
	taken     chunks  // what the running round makes durable
	ranges    []Range // of taken
	syncs     uint64
	closed    bool
}

// spareWaiters is how many waiters are retained.
const spareWaiters = 16

// spareAnswers is how many answers are retained: those of a round that are being sent, and those of the next.
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

// began returns the number of losses so far, for a write that begins; see losses.
func (g *group) began() (losses uint64) { return g.losses.began() }

var errOutside = errors.New("commit: a write outside of the octets of the backing")

// wrote records a write that has ended with err. Octets outside of the backing are lost: no sync covers
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
	g.dirty.add(r) // again: a round that has failed meanwhile may have removed them as lost
	g.losses.wrote(began, r, err)
}

// Failed is called for a peer's RDMA Write that the backing could not store. WriteAt has already
// recorded the failure. The existence of this method says that the failure need not end the
// stream: the next Flush of those octets fails, until they are written again.
func (g *group) Failed(off, n int64, err error) {}

// close refuses new Flushes, and waits until those that have begun have ended.
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
