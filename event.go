package iwarp

// An Event is something that no completion tells, or not to everybody: the end of
// a QP, the overflow of a CQ, a message that waits, or a limit that was asked for
// (draft-hilland-rddp-verbs section 8.3.3). It names the one resource that it is about; the
// others are nil.
type Event struct {
	Kind      EventKind
	QP        *QP
	CQ        *CQ
	SRQ       *SRQ
	Terminate *TerminateError // that ended the QP, sent or received; else nil
	Err       error           // the cause; nil for a graceful end and for limits
}

// An EventKind says what happened.
type EventKind uint8

const (
	// EventClosed: both sides have ended the stream gracefully.
	EventClosed EventKind = iota + 1
	// EventTerminateReceived: the peer sent a Terminate; Err is a *TerminateError.
	EventTerminateReceived
	// EventTerminated: this side found an error and ended the stream; Err is a *TerminateError.
	EventTerminated
	// EventConnectionLost: the connection was reset, or the peer vanished.
	EventConnectionLost
	// EventAborted: this side aborted the stream.
	EventAborted
	// EventCQOverflow: a completion found its CQ full and is lost. Every QP that
	// loses one is terminated (RFC 5040 section 8.1.1 (10)).
	EventCQOverflow
	// EventBadClose: the peer sent a message after this side had ended the stream
	// gracefully. The message was thrown away.
	EventBadClose
	// EventSRQLimit: an SRQ has fewer receives than the limit of SRQ.SetLimit.
	EventSRQLimit
	// EventRecvLimit: the messages of a QP's peer occupy more receives of the SRQ than
	// the limit of QP.SetRecvLimit.
	EventRecvLimit
	// EventNoReceive: a message of the peer has waited for a receive for one second, and
	// goes on waiting until QPConfig.RNRWait is over. It comes once for each such wait. Err
	// matches ErrNoReceive, and the QP has not ended.
	EventNoReceive
)

// eventNames are the names of events.
var eventNames = [...]string{
	EventClosed: "closed", EventTerminateReceived: "terminate received", EventTerminated: "terminated",
	EventConnectionLost: "connection lost", EventAborted: "aborted", EventCQOverflow: "CQ overflow",
	EventBadClose: "bad close", EventSRQLimit: "SRQ limit", EventRecvLimit: "receive limit",
	EventNoReceive: "no receive",
}

func (k EventKind) String() string { return named("EventKind", eventNames[:], uint8(k)) }

// Events returns the channel of asynchronous events. It holds 256; when it is full
// the newest are dropped and counted, so nobody who does not read it blocks
// anything (RFC 5042 section 2.2.7). It is closed by Close; who had it before can still
// read what is in it.
func (r *RNIC) Events() <-chan Event { return r.events.Channel() }

// EventsDropped tells how many events found the channel full.
func (r *RNIC) EventsDropped() uint64 { return r.events.Dropped() }

// raise may be called with any lock held.
func (r *RNIC) raise(e Event) { r.events.Put(e) }
