package commit

import (
	"sync"

	"github.com/goiwarp/iwarp/stag"
)

// A Flusher makes a range durable.
type Flusher = stag.Flusher

// A Deferrer is a Flusher that need not be waited for: one goroutine then serves all who
// want something durable, and those of a stream do not need one each.
type Deferrer interface {
	Flusher
	// FlushThen is Flush that does not wait. If it has nothing to wait for it returns
	// false and the outcome. Else it returns true, and calls then with the outcome: once,
	// from any goroutine, perhaps before it returns. then must not wait either. If there is
	// work to be done for it, FlushThen has run do that: at once or later, in a goroutine that
	// may wait.
	FlushThen(off, n int64, then func(error), run func(work func())) (pending bool, err error)
}

// A group commits for all who write to one backing: it knows what was written since it
// was durable, and one sync serves everybody who came before it began. See round.
type group struct {
	// sync makes the chunks of ranges durable, or everything.
	sync func(ranges []Range) error
	// begin has the system begin to write what is dirty of a range, of all if that is empty,
	// without waiting for it. What goes wrong is for sync to tell. nil: it would not help.
	begin func(Range)
	// wholesale: sync makes everything durable, whatever it is asked for.
	wholesale bool

	dirty chunks // written since a sync was begun for them

	mu      sync.Mutex
	losses  losses
	busy    bool      // there is a committer, or one has been asked for
	idle    sync.Cond // busy has ended
	running *round
	next    *round // that waits for the running one to end
	crowded bool   // the last round had several users
	spare   []*round
	told    []outcome // by the committer, when a round has ended
	telling int       // who do so
	once    func()    // commitOnce, made once
	steady  func()    // commitAll, likewise
	taken   chunks    // what the running round makes durable
	ranges  []Range   // of taken
	syncs   uint64
	closed  bool
}

func newGroup(size int64, wholesale bool, sync func([]Range) error) *group {
	g := &group{
		sync: sync, wholesale: wholesale,
		dirty: newChunks(size), taken: newChunks(size),
	}
	g.idle.L = &g.mu
	g.once, g.steady = g.commitOnce, g.commitAll
	return g
}

// began is the moment at which a write begins; see losses.
func (g *group) began() (losses uint64) { return g.losses.began() }

// wrote tells of a write that has ended, with err.
func (g *group) wrote(began uint64, off int64, n int, err error) {
	r := Range{off, int64(n)}
	g.dirty.add(r)
	if err == nil && !g.losses.ever.Load() {
		return // a sync that fails from now on finds them dirty
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.losses.wrote(began, r, err)
}

// remembers tells NewLatch that the backing has losses of its own.
func (g *group) remembers() {}

// Failed is told of a peer's RDMA Write that the backing could not take. WriteAt knows of
// it already; what is left to say is that it need not end the stream: the next Flush of
// those octets fails, until they are written again.
func (g *group) Failed(off, n int64, err error) {}

// close lets no more Flush begin, and waits for those that have.
func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for g.busy || g.telling > 0 {
		g.idle.Wait()
	}
}

// Syncs returns how many syncs there were.
func (g *group) Syncs() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.syncs
}
