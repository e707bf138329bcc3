package rdmap

import (
	"errors"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// Config is what a [Stream] stands on. Table, Receives and Events must be set.
type Config struct {
	Table *stag.Table
	Scope stag.Scope // of this stream: its PD and its own identity

	IRD       int // requests of the peer that may be unanswered; 0: none
	ORD       int // requests to the peer that may be unanswered; 0: none
	SendDepth int // requests in the send queue; the memory for them grows on use

	Receives   ReceiveQueue
	Events     Events
	Extensions []*Extension

	// RTR is the kind of the message that an initiator sends ahead of everything else in
	// peer-to-peer set-up (RFC 6581 section 9.2); 0: it sends none. It is empty and makes no
	// completion. RTRRead takes MSN 1 of QN 1 and, until it is answered, one slot of the ORD,
	// which must be there.
	RTR    transport.RTR
	Window int // segments that may come out of order: see ddp.Config
}

// Events is the layer above, a queue pair.
type Events interface {
	// Complete tells that a request has ended, each exactly once and in the order of
	// posting. r is lent for the call. code is that of the Terminate, of either side,
	// that r is the reason of, else 0. The Stream's lock is held: Complete must not
	// call the Stream.
	Complete(r *Request, st Status, code transport.Code)

	// Completed follows calls of Complete, under the same lock: there are no more for
	// now.
	Completed()

	// Terminated tells, from the receiving goroutine, that the peer's Terminate was
	// delivered. t is the callee's to keep. No lock is held.
	Terminated(t Terminate)

	// Kick tells, from any goroutine, that an extension has answered and Fill has
	// something to send. No lock is held.
	Kick()
}

// A ReceiveQueue is the receive queue, the buffers for Sends. Its calls come from the
// receiving goroutine, without any lock. The first three methods are those of
// [ddp.Queue]; Immediate Data takes a buffer but is not placed into it.
type ReceiveQueue interface {
	Posted() int
	Buffer(k int) []stag.Span
	Missing() error

	// Deliver takes buffer 0 out of the queue: it holds the message m.
	Deliver(m Received)

	// DeliverSends is Deliver for as many Sends as there are lengths, all of them op,
	// which invalidates nothing.
	DeliverSends(op Opcode, lens []uint32)
}

// Received is a message that was delivered.
type Received struct {
	Opcode      Opcode
	Len         uint32 // 0 for Immediate Data
	Imm         [8]byte
	Solicited   bool
	Invalidated bool      // the peer has invalidated STag
	STag        stag.STag // meaningful only if Invalidated
}

var (
	// ErrQueueFull: the send queue has no room for another request.
	ErrQueueFull = errors.New("rdmap: send queue full")
	// ErrEnded: the stream is ending, or Refuse or Shut was called: it takes no more requests.
	ErrEnded = errors.New("rdmap: stream has ended")
	// ErrLate: the peer has sent a message after Shut.
	ErrLate = errors.New("rdmap: the peer sent a message after this side had ended the stream")
	// ErrRequest: the request cannot be carried out by any stream.
	ErrRequest = errors.New("rdmap: invalid request")
)
