package iwarp

import (
	"fmt"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

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

func (k EventKind) String() string {
	switch k {
	case EventClosed:
		return "closed"
	case EventTerminateReceived:
		return "terminate received"
	case EventTerminated:
		return "terminated"
	case EventConnectionLost:
		return "connection lost"
	case EventAborted:
		return "aborted"
	case EventCQOverflow:
		return "CQ overflow"
	case EventBadClose:
		return "bad close"
	case EventSRQLimit:
		return "SRQ limit"
	case EventRecvLimit:
		return "receive limit"
	case EventNoReceive:
		return "no receive"
	}
	return fmt.Sprintf("EventKind(%d)", uint8(k))
}

// Events returns the channel of asynchronous events. It holds 256; when it is full
// the newest are dropped and counted, so nobody who does not read it blocks
// anything (RFC 5042 section 2.2.7). It is closed by Close; who had it before can still
// read what is in it.
func (r *RNIC) Events() <-chan Event { return r.events.channel() }

// EventsDropped tells how many events found the channel full.
func (r *RNIC) EventsDropped() uint64 { return r.events.lost.Load() }

// raise may be called with any lock held.
func (r *RNIC) raise(e Event) { r.events.raise(e) }

// eventQueue is the channel of events. Its mutex is a leaf of the lock order: streams report
// with their locks held.
type eventQueue struct {
	lost atomic.Uint64 // events dropped because the channel was full

	mu lockorder.Mutex[lockorder.Leaf]
	ch chan Event // nil: closed
}

func (q *eventQueue) raise(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case q.ch <- e: // a nil channel takes nothing
	default:
		q.lost.Add(1)
	}
}

func (q *eventQueue) channel() <-chan Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ch == nil {
		c := make(chan Event)
		close(c)
		return c
	}
	return q.ch
}

func (q *eventQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	close(q.ch)
	q.ch = nil
}
