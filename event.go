package iwarp

import "github.com/goiwarp/iwarp/internal/names"

// An Event reports what no completion reports, or what only the goroutine that polls would
// learn: the end of a QP, the overflow of a CQ, a message that waits for a receive, or a limit
// that was armed (draft-hilland-rddp-verbs section 8.3.3). The field of the resource concerned
// is set; those of other resources are nil.
type Event struct {
	Kind      EventKind
	QP        *QP
	CQ        *CQ
	SRQ       *SRQ
	Terminate *TerminateError // the Terminate that ended the QP, sent or received; else nil
	Err       error           // the cause; nil for a graceful end, for limits, and for EventNoProgress
}

// An EventKind is the kind of an Event.
type EventKind uint8

const (
	// EventClosed means that both sides have ended the stream gracefully. Over TCP without TLS the end
	// of the peer's process, even a killed one, looks the same if no work was outstanding. Over SCTP so does
	// QP.Abort of the peer. If that matters, the applications must agree on the end by a message.
	EventClosed EventKind = iota + 1
	// EventTerminateReceived means that the peer sent a Terminate. Err is a *TerminateError.
	EventTerminateReceived
	// EventTerminated means that this side found an error and ended the stream. Err is a
	// *TerminateError.
	EventTerminated
	// EventConnectionLost means that the connection was reset, or that the peer vanished.
	EventConnectionLost
	// EventAborted means that this side aborted the stream.
	EventAborted
	// EventCQOverflow means that a completion found its CQ full and was lost. Every QP that
	// loses one is terminated (RFC 5040 section 8.1.1 (10)).
	EventCQOverflow
	// EventBadClose means that the peer sent a message after this side had ended the stream
	// gracefully. The message was discarded.
	EventBadClose
	// EventSRQLimit means that an SRQ has fewer receives than the limit set by SRQ.SetLimit.
	EventSRQLimit
	// EventRecvLimit means that the messages of a QP's peer occupy more receives of the SRQ
	// than the limit set by QP.SetRecvLimit.
	EventRecvLimit
	// EventNoReceive means that a message of the peer has waited for a receive for one second.
	// It continues to wait until QPConfig.RNRWait is over. The event is raised once for each
	// such wait. Err matches ErrNoReceive; the QP has not ended. A QP with an SRQ also takes no receive
	// while it holds QPConfig.RecvDepth receives, until their completions are polled; Err says so.
	EventNoReceive
	// EventNoProgress means that posted work of a QP has made no progress for
	// QPConfig.StallWait: the peer reads nothing from the connection, or does not answer an RDMA
	// Read, or the work waits for a window or for the peer's first message. It is raised once
	// each time. The QP has not ended.
	EventNoProgress
)

// eventNames are the names of events.
var eventNames = [...]string{
	EventClosed: "closed", EventTerminateReceived: "terminate received", EventTerminated: "terminated",
	EventConnectionLost: "connection lost", EventAborted: "aborted", EventCQOverflow: "CQ overflow",
	EventBadClose: "bad close", EventSRQLimit: "SRQ limit", EventRecvLimit: "receive limit",
	EventNoReceive: "no receive", EventNoProgress: "no progress",
}

func (k EventKind) String() string { return names.Of(k, eventNames[:], "EventKind(%d)") }

// Events returns the channel of asynchronous events. The channel holds 256 events. When it is
// full new events are dropped and counted, so a program that does not read the channel blocks
// nothing (RFC 5042 section 2.2.7). [RNIC.Close] closes the channel; the events in it can
// still be received.
func (r *RNIC) Events() <-chan Event { return r.events.Channel() }

// EventsDropped returns the number of events that were dropped because the channel was full.
func (r *RNIC) EventsDropped() uint64 { return r.events.Dropped() }

// raise reports an event. It may be called with any lock held.
func (r *RNIC) raise(e Event) { r.events.Put(e) }
