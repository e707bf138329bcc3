package transport

import (
	"errors"
	"net"
)

// An LLP is one DDP stream over a lower layer: an MPA connection, an SCTP stream
// pair, or a pipe of records. It is reliable, preserves the boundaries of segments,
// and reports their order (RFC 5041 section 3).
//
// One goroutine at a time may use the sending half (Append, Flush), and one at a
// time the receiving half (Receive); the two halves are independent. All other
// methods may be called from any goroutine.
type LLP interface {
	// MaxULPDU returns the size of the largest segment, in octets with its DDP header,
	// that should be appended now. It may change at any time; a segment that was within
	// an earlier result is still accepted.
	MaxULPDU() int

	// Append frames one segment and adds it to the batch: head, then the octets of
	// payload. It copies head. The payload must not change until the next Flush has
	// returned nil or the LLP has failed. With stage, Append copies the payload (and
	// computes its digest in the same pass), so that the caller may reuse it at once.
	// If the batch is full, Append does nothing and reports false: call Flush first.
	// An empty batch accepts one segment of any size.
	//
	// Append does not retain the slice of slices.
	Append(head []byte, payload [][]byte, stage bool) bool

	// Flush sends the batch. It returns nil when the network has accepted all of it;
	// the caller may then reuse the buffers. Without wait it returns ErrAgain if the
	// network accepts no more now; the next Flush continues there, and segments may
	// still be appended. With wait it blocks until the network has accepted the batch
	// or the LLP has failed. It returns ErrFenced, and keeps the batch, if this end may
	// not send yet.
	Flush(wait bool) error

	// Stage copies the payload that the batch still refers to, so that the caller may
	// reuse it before it is sent. It is called between two calls of Flush, and does
	// nothing if the batch is empty.
	Stage()

	// Receive reads once, hands the segments that are complete to p, and returns nil;
	// there may be none. If no input has arrived, it returns ErrAgain with NoWait;
	// otherwise it waits, and returns ErrWoken, without reading, if Wake ends the wait. A
	// lower layer that cannot check for input without waiting always returns ErrAgain
	// with NoWait. Receive returns io.EOF if the peer has ended its half gracefully, at
	// a segment boundary. It returns an error of p unchanged. After ErrStall the next
	// Receive does not read; it presents the same segment again, and those that have
	// arrived after it. After any other error nothing more is ever delivered. A *Fault
	// reports an error of the framing.
	//
	// A caller that will not call Receive for some time must call it until it returns
	// ErrAgain or waits: up to then the LLP may keep the memory that it reads into.
	Receive(p Placer, wait Wait) error

	// Discard reads and drops all further input until the peer ends its half (io.EOF) or
	// the LLP fails. A side that sent or received a Terminate calls it, so that unread
	// input does not turn its FIN into a reset.
	Discard() error

	// Arm makes a goroutine of the poller call ready once, when there is input, or at once
	// if there already is. It reports false if the lower layer does not support this, or
	// is closed: then a goroutine must stay in Receive. Close and Abort at this end cause
	// the call, too, so that the end is noticed. ready is called with no lock held, and
	// must not block. No goroutine may be in Receive when Arm is called. Arm releases what
	// Receive needed to wait: an LLP that is armed has no buffer, no descriptor but that
	// of the connection, and no goroutine.
	Arm(ready func()) bool
	// Disarm cancels Arm. It does not wait for a call of ready that is running.
	Disarm()

	// Wake makes a Receive that waits return ErrWoken. It is idempotent. If no Receive
	// waits, the next Receive that would wait returns ErrWoken at once.
	Wake()

	// CloseSend ends the sending half gracefully, after the flushed data.
	CloseSend() error
	// Close releases the lower layer gracefully. Calls that wait return net.ErrClosed.
	Close() error
	// Abort ends both halves at once (TCP: RST). Calls that wait return an error that
	// wraps cause and net.ErrClosed. Of several causes the first is used.
	Abort(cause error)

	Caps() Caps
	// Path names how the connection is driven, for an operator: the Path of the Stream, or
	// the network of an LLP that does not use a Stream.
	Path() string
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// A Wait says what a call does if it finds no input.
type Wait uint8

const (
	// NoWait: it returns ErrAgain.
	NoWait Wait = iota
	// Park: its goroutine waits, as in package net, without a thread.
	Park
	// Block: its goroutine waits in the kernel, together with its thread, which wakes up
	// sooner. It needs an eventfd until Arm, Close, or the next call with Park. Only TCP
	// over Linux supports it; other connections park.
	Block
)

// Caps describes optional properties of an LLP.
type Caps struct {
	OutOfOrder bool // segments may be delivered out of the sender's order
	Digest     bool // segments are protected by CRC32c or better
	Secure     bool // confidential and authenticated (TLS)
}

var (
	// ErrAgain: the call would have to wait.
	ErrAgain = errors.New("transport: would block")
	// ErrFenced: a responder may not send before the initiator's first segment has
	// arrived (RFC 5044 section 7.1.2 rule 4).
	ErrFenced = errors.New("transport: not allowed to send before the peer's first segment")
	// ErrStall is returned by a Placer that cannot accept a segment yet: the segment is to
	// be presented again. This is back-pressure.
	ErrStall = errors.New("transport: segment held back")
	// ErrWoken is returned by a Receive, or a Stream.Read, whose wait Wake has ended.
	ErrWoken = errors.New("transport: woken")
)
