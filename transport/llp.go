package transport

import (
	"errors"
	"net"
)

// An LLP is one DDP stream over a lower layer: an MPA connection, an SCTP stream
// pair, a pipe of records. It is reliable, keeps the boundaries of segments, and
// tells their order (RFC 5041 section 3).
//
// One goroutine at a time may use the sending half (Append, Flush), and one at a
// time the receiving half (Receive); the two halves are independent. All other
// methods may be called from any goroutine.
type LLP interface {
	// MaxULPDU is the largest segment, in octets with its DDP header, that should
	// be handed down now. It may change at any time; a segment that was within an
	// earlier answer is still accepted.
	MaxULPDU() int

	// Append frames one segment into the batch: head, then the octets of payload.
	// It copies head. The payload stays the caller's and must not change until the
	// next Flush has returned nil or the LLP has failed; with stage Append copies it
	// (and computes its digest in the same pass), so that the caller may reuse it at
	// once. Append reports false, and does nothing, if the batch is
	// full: Flush first. An empty batch takes any one segment.
	//
	// The slice of slices is the caller's again when Append returns.
	Append(head []byte, payload [][]byte, stage bool) bool

	// Flush sends the batch. It returns nil when all of it has been handed to the
	// network: its buffers are the caller's again. Without wait it returns ErrAgain
	// if the network takes no more now; the batch keeps its place, and segments may
	// still be appended. With wait it blocks until the batch is out or the LLP has
	// failed. ErrFenced: this end may not send yet; the batch is kept.
	Flush(wait bool) error

	// Stage copies the payload that the batch still refers to: the caller may reuse it
	// although it is not sent yet. It is called between two calls of Flush, and does
	// nothing if the batch is empty.
	Stage()

	// Receive hands one read's worth of arrived segments to p, and returns nil. If nothing
	// has come it returns ErrAgain with NoWait; else it waits, and returns ErrWoken, having
	// done nothing, if Wake ends the wait. What has come may be no whole segment yet. A
	// lower layer that cannot tell without waiting returns ErrAgain whenever it must not.
	// io.EOF: the peer ended its half gracefully, at a segment boundary.
	// An error of p ends Receive and is returned as it is. After ErrStall the next
	// Receive presents the same segment again, and what has come behind it, and reads
	// nothing then; after any other error nothing more is ever delivered. A *Fault tells of
	// broken framing.
	//
	// A caller that will not call Receive for some time calls it until ErrAgain, or waits:
	// up to then the LLP may keep the memory that it reads into.
	Receive(p Placer, wait Wait) error

	// Discard reads and drops all further input until the peer ends its half (io.EOF) or
	// the LLP fails. A side that sent or received a Terminate calls it, so that unread
	// input does not turn its FIN into a reset.
	Discard() error

	// Arm asks that ready be called once, from a goroutine of the poller, when there
	// is something to receive (at once if there already is). It reports false where
	// the lower layer cannot tell, or is closed: then a goroutine must stay in
	// Receive. Close and Abort at this end call ready too: there is an end to learn.
	// ready is called without any lock, and must not block. No goroutine may be in Receive when
	// Arm is called. Arm releases what Receive needed to wait: an idle LLP that is armed holds
	// no buffer, no descriptor but the connection's, and no goroutine.
	Arm(ready func()) bool
	// Disarm cancels Arm. A ready that is already running is not waited for.
	Disarm()

	// Wake makes a Receive that waits return ErrWoken. It is idempotent, and not lost if
	// none waits: the next Receive that would wait returns ErrWoken at once.
	Wake()

	// CloseSend ends the sending half gracefully after what was flushed.
	CloseSend() error
	// Close releases the lower layer gracefully. Parked calls return net.ErrClosed.
	Close() error
	// Abort ends everything at once (TCP: RST). Parked calls return an error that
	// wraps cause and net.ErrClosed. The first cause stays.
	Abort(cause error)

	Caps() Caps
	// Path names how the connection is driven, for an operator: what Stream.Path returns, or
	// the network of an LLP that is over no Stream.
	Path() string
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// A Wait is what a call does that finds nothing.
type Wait uint8

const (
	// NoWait: it returns.
	NoWait Wait = iota
	// Park: its goroutine waits, as in package net, and no thread with it.
	Park
	// Block: its goroutine sleeps in the kernel with its thread, which is woken sooner. It takes
	// an eventfd until Arm, Close, or the next call that parks. A connection that cannot do
	// so parks: any but TCP over Linux.
	Block
)

// Caps tells what an LLP promises beyond the contract.
type Caps struct {
	OutOfOrder bool // segments may be handed up out of the sender's order
	Digest     bool // segments are protected by CRC32c or better
	Secure     bool // confidential and authenticated (TLS)
}

var (
	// ErrAgain: nothing can be done without waiting.
	ErrAgain = errors.New("transport: would block")
	// ErrFenced: a responder may not send before the initiator's first segment has
	// come (RFC 5044 section 7.1.2 rule 4).
	ErrFenced = errors.New("transport: not allowed to send before the peer's first segment")
	// ErrStall is what a Placer answers when it cannot take a segment yet, and wants
	// it presented again: back-pressure.
	ErrStall = errors.New("transport: segment held back")
	// ErrWoken ends a Receive, or a Stream.Read, that waits, after Wake.
	ErrWoken = errors.New("transport: woken")
)
