package rdmap

import (
	"errors"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// Config holds what a [Stream] is made from. Table, Receives and Events must be set.
type Config struct {
	Table *stag.Table
	Scope stag.Scope // the PD and the identity of this stream

	IRD       int // how many requests of the peer may be outstanding
	ORD       int // how many requests to the peer may be outstanding
	SendDepth int // how many requests the send queue holds; its memory grows on use

	Receives   ReceiveQueue
	Events     Events
	Extensions []*Extension

	// Publish is called if messages were delivered and the peer has sent a request after them, before the request may be
	// answered. When Publish returns the messages must be complete for the layer above, because the response tells the peer
	// so (RFC 5040 appendix B, RFC 7306 section 7). The receiving goroutine calls it, with no lock held. nil: the messages
	// are complete when [ReceiveQueue].Deliver returns.
	Publish func()

	// RTR is the kind of the message that an initiator sends first in peer-to-peer set-up
	// (RFC 6581 section 9.2); 0: it sends none. The message is empty and causes no
	// completion. RTRRead uses MSN 1 of QN 1 and, until the response arrives, one slot of the
	// ORD, which must not be 0.
	RTR transport.RTR
	// First is a Send that an initiator sends first, instead of an RTR. It causes no
	// completion. New copies it. Empty: there is none.
	First []byte
	// Gate checks the first message of the peer; nil: there is no such check.
	Gate   *Gate
	Window int // how many segments may be out of order: see ddp.Config

	// Admit is asked whether a Read with octets may start, when nothing else keeps it from
	// starting: in the order of posting, again after each Wait, and never again after Go or Skip.
	// The lock of the Stream is held: Admit must not call any Stream. It may set r.Grant, but
	// change nothing else, and must not retain r. nil: all Reads may start.
	Admit func(r *Request) Admission
}

// Events is implemented by the layer above, a queue pair.
type Events interface {
	// Complete reports that a request has ended. It is called exactly once for each
	// request, in the order of posting, and must not retain r. If r is the reason of a
	// Terminate, of either side, code is its code, otherwise 0. The lock of the Stream is
	// held: Complete must not call the Stream.
	Complete(r *Request, st Status, code transport.Code)

	// Completed is called, under the same lock, after a series of calls of Complete.
	Completed()

	// Terminated reports, from the receiving goroutine, that a Terminate of the peer was
	// delivered. It may retain t. No lock is held.
	Terminated(t Terminate)

	// Kick reports, from any goroutine, that an extension has answered a request, so that
	// Fill has something to send. No lock is held.
	Kick()
}

// A ReceiveQueue is the receive queue, which holds the buffers for Sends. Its methods are
// called from the receiving goroutine, with no lock held. The first three methods are those
// of [ddp.Queue]. Immediate Data takes a buffer, but is not placed in it.
type ReceiveQueue interface {
	Posted() int
	Buffer(k int) []stag.Span
	Missing() error

	// Deliver removes buffer 0, which holds the message m, from the queue. Alternatively it ends the stream,
	// by [Stream.Terminate], and leaves the buffer in the queue: no message is delivered any more.
	Deliver(m Received)

	// DeliverSends is Deliver for a series of Sends with the given lengths. All have the
	// opcode op, which does not invalidate an STag.
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
	// ErrQueueFull: the send queue is full.
	ErrQueueFull = errors.New("rdmap: send queue full")
	// ErrEnded: the stream is ending, or Refuse or Shut was called.
	ErrEnded = errors.New("rdmap: stream has ended")
	// ErrLate: the peer has sent a message after Shut.
	ErrLate = errors.New("rdmap: the peer sent a message after this side had ended the stream")
	// ErrNoReads: the request has a response, and Config.ORD is 0.
	ErrNoReads = errors.New("rdmap: the stream has no outbound Reads (ORD 0)")
	// ErrRequest: the request is invalid for any stream.
	ErrRequest = errors.New("rdmap: invalid request")
)
