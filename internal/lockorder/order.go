package lockorder

// A Rank is the type argument of a [Mutex]: one of the types below.
type Rank interface{ ranked() }

type rank struct{}

func (rank) ranked() {}

// order is the ranks from the outermost to the innermost. Under a mutex only those of later ranks
// may be locked: those of one rank do not nest.
var order = []Rank{
	Setups{},
	Turn{},
	PD{},
	Registry{},
	QP{},
	Stream{},
	Solicitor{},
	RecvQueue{},
	SRQ{},
	CQ{},
	Conn{},
	Sweeper{},
	Poller{},
	Updates{},
	Entry{},
	Windows{},
	Region{},
	Table{},
	Leaf{},
}

// The ranks, in the same order.
type (
	// Setups is of setup.Manager: the connections that are being set up, and the listeners. The
	// goroutine of a listener is started under it.
	Setups struct{ rank }

	// Turn is of the goroutine of a transport.Poller that looks for peers that have vanished. It
	// is held while connections are asked, and ended.
	Turn struct{ rank }

	// PD is how many objects are in a protection domain.
	PD struct{ rank }

	// Registry is the QPs and CQs of an RNIC, and how far its life has got: a QP is established
	// under it, so that the end of the RNIC misses none.
	Registry struct{ rank }

	// QP is why a QP has ended, and what was posted before it was connected, which goes to the
	// stream under it.
	QP struct{ rank }

	// Stream is the protocol state of an rdmap.Stream. Completions of the send queue go into the
	// CQ under it, in order.
	Stream struct{ rank }

	// Solicitor is a soliciting.Solicitor, which many streams share. It is asked, and given back
	// to, under the lock of a stream; the goroutines of other streams are started under it.
	Solicitor struct{ rank }

	// RecvQueue is the receive queue of a QP.
	RecvQueue struct{ rank }

	// SRQ is a shared receive queue, from which a receive is moved to that of a QP.
	SRQ struct{ rank }

	// CQ is a completion queue. The slots of polled completions are freed after it is unlocked: a
	// message may have waited for them, or a poster.
	CQ struct{ rank }

	// Conn is a qpconn.Conn: who may receive, who may send, and how the connection ends.
	Conn struct{ rank }

	// Sweeper is the list of a qpconn.Sweeper, whose alarm is the poller's.
	Sweeper struct{ rank }

	// Poller is the slots of a transport.Poller, whose system calls are made under it.
	Poller struct{ rank }

	// Updates is the turns of atomic operations on Buffers, which are read and written under it.
	Updates struct{ rank }

	// Entry is what an STag names that is enabled again and again, from region to region.
	Entry struct{ rank }

	// Windows are those that are bound to one stream.
	Windows struct{ rank }

	// Region is the end of a stag.Region, and the windows that are bound to it.
	Region struct{ rank }

	// Table is the changes of a stag.Table.
	Table struct{ rank }

	// Leaf is of everything under which no mutex is locked: counters, events, tasks, spare
	// objects, broadcasts, and what wakes one goroutine.
	Leaf struct{ rank }
)
