package lockorder

// A Rank is the type argument of a [Mutex]: one of the types below.
type Rank interface{ ranked() }

type rank struct{}

func (rank) ranked() {}

// order lists the ranks from the outermost to the innermost. Under a mutex, only mutexes of later
// ranks may be locked: mutexes of one rank do not nest.
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
	// Setups guards the connections that a setup.Manager is setting up, and its listeners. The
	// goroutine of a listener is started under it.
	Setups struct{ rank }

	// Turn belongs to the goroutine of a transport.Poller that looks for peers that have vanished.
	// It is held while connections are checked, and ended.
	Turn struct{ rank }

	// PD guards the number of objects in a protection domain.
	PD struct{ rank }

	// Registry guards the QPs and CQs of an RNIC, and the stage of its life: a QP is established
	// under it, so that the end of the RNIC misses none.
	Registry struct{ rank }

	// QP guards why a QP has ended, and the work that was posted before it was connected. That
	// work goes to the stream under it.
	QP struct{ rank }

	// Stream guards the protocol state of an rdmap.Stream. Completions of the send queue go into
	// the CQ under it, in order.
	Stream struct{ rank }

	// Solicitor guards a soliciting.Solicitor, which many streams share. Streams take from it and
	// give back to it under their locks; the goroutines of other streams are started under it.
	Solicitor struct{ rank }

	// RecvQueue guards the receive queue of a QP.
	RecvQueue struct{ rank }

	// SRQ guards a shared receive queue, from which receives are moved to the receive queue of a QP.
	SRQ struct{ rank }

	// CQ guards a completion queue. The slots of polled completions are freed after it is unlocked:
	// a message or a poster may be waiting for them.
	CQ struct{ rank }

	// Conn guards a qpconn.Conn: the rights to receive and to send, and the end of the connection.
	Conn struct{ rank }

	// Sweeper guards the list of a qpconn.Sweeper, whose alarm is the poller's.
	Sweeper struct{ rank }

	// Poller guards the slots of a transport.Poller, whose system calls are made under it.
	Poller struct{ rank }

	// Updates serialises atomic operations on Buffers, which are read and written under it.
	Updates struct{ rank }

	// Entry guards an index of the STag table that is enabled again and again, for one region
	// after another.
	Entry struct{ rank }

	// Windows guards the windows that are bound to one stream.
	Windows struct{ rank }

	// Region guards the end of a stag.Region, and the windows that are bound to it.
	Region struct{ rank }

	// Table guards the changes of a stag.Table.
	Table struct{ rank }

	// Leaf guards everything under which no mutex is locked: counters, events, tasks, spare
	// objects, broadcasts, and the means to wake one goroutine.
	Leaf struct{ rank }
)
