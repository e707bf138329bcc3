package sctp

import (
	"encoding/binary"
	"net"
	"sync"

	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/transport"
)

// A Conn is an established session: a [transport.LLP] whose segments arrive in any
// order. Close and Abort both end it with a Terminate message, since RFC 5043 has no
// other way to end one session of several; Abort waits for nothing.
//
// All that is sent is copied. A Conn borrows the memory of one message while it receives,
// and the memory of a batch while segments wait to be sent.
type Conn struct {
	s     Stream
	limit int // the longest segment

	// The sending half.
	out     *batch
	sendErr error

	mu         sync.Mutex
	ssn        uint16 // of the next message
	heard      bool   // our first message is known to have arrived
	terminated bool   // our Terminate is sent, or will be when heard is set
	closed     error
	done       chan struct{} // closed when closed is set

	// The receiving half, for one at a time.
	recv    chan struct{} // holds one element while free
	session session
	recvErr error
}

var _ transport.LLP = (*Conn)(nil)

// newConn begins a session whose first message has been sent. heard says that the peer is
// known to have received it.
func newConn(s Stream, in session, heard bool, maxULPDU int) *Conn {
	c := &Conn{s: s, session: in, ssn: 1, heard: heard, done: make(chan struct{}), recv: make(chan struct{}, 1)}
	c.recv <- struct{}{}
	c.limit = s.MaxMessage() - ssnSize
	if maxULPDU > 0 {
		c.limit = max(min(c.limit, maxULPDU), MinMessage-ssnSize)
	}
	return c
}

// MaxULPDU returns how many octets a message carries after its DDP-SSN without being
// fragmented (RFC 5043 section 9).
func (c *Conn) MaxULPDU() int { return c.limit }

// Arm reports false: only a waiting Receive learns that a message has arrived.
func (c *Conn) Arm(func()) bool { return false }

// Disarm does nothing.
func (c *Conn) Disarm() {}

// Wake makes a Receive that waits return ErrWoken.
func (c *Conn) Wake() { c.s.Wake() }

// Caps says that segments arrive in any order, and that the CRC of SCTP protects them.
func (c *Conn) Caps() transport.Caps {
	return transport.Caps{OutOfOrder: true, Digest: true}
}

// Path returns the name of the network.
func (c *Conn) Path() string { return c.s.LocalAddr().Network() }

// LocalAddr returns the local address of the association.
func (c *Conn) LocalAddr() net.Addr { return c.s.LocalAddr() }

// RemoteAddr returns the remote address of the association.
func (c *Conn) RemoteAddr() net.Addr { return c.s.RemoteAddr() }

// CloseSend sends the Terminate message. What the peer still sends is received.
func (c *Conn) CloseSend() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.terminated {
		return nil
	}
	c.terminated = true
	if c.heard {
		return c.send(PPIDControl, terminate(), true)
	}
	go c.terminateLater()
	return nil
}

func terminate() []byte { return (&control{function: Terminate}).append(nil) }

// terminateLater sends the Terminate when it can no longer overtake our first message. The peer's
// segments do not show that: an initiator may send them as soon as its Initiate is acknowledged, and
// receive the Accept later (RFC 5043 section 6.6).
func (c *Conn) terminateLater() {
	if c.s.Acked(nil) {
		c.hear()
	}
}

// hear records that our first message has arrived, or that the peer has ended the session without
// waiting for it, and sends the Terminate that has waited for that.
func (c *Conn) hear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heard {
		return
	}
	c.heard = true
	if c.terminated {
		_ = c.send(PPIDControl, terminate(), true) // Receive reports a failure
	}
}

// send sends a message, which begins with room for its DDP-SSN. The caller holds mu.
func (c *Conn) send(ppid uint32, msg []byte, urgent bool) error {
	binary.BigEndian.PutUint16(msg, c.ssn)
	if err := c.s.Send(ppid, msg, urgent); err != nil {
		return err
	}
	c.ssn++
	return nil
}

// Close ends the session.
func (c *Conn) Close() error { return c.shut(net.ErrClosed) }

// Abort ends the session, and keeps the cause.
func (c *Conn) Abort(cause error) { _ = c.shut(&errtext.Aborted{What: "sctp: session", Cause: cause}) }

// shut ends the calls that wait. The peer's half is read to its end and discarded, because the
// other sessions of the association share the space for unread messages.
func (c *Conn) shut(why error) error {
	err := c.CloseSend()
	c.mu.Lock()
	if c.closed != nil {
		c.mu.Unlock()
		return nil
	}
	c.closed = why
	close(c.done)
	c.mu.Unlock()
	c.s.Wake()
	go c.drain()
	return err
}

// takeRecv acquires the receiving half, which giveRecv releases. It reports false if the
// session is closed and its streams are being read to their end.
func (c *Conn) takeRecv() bool {
	select {
	case <-c.recv:
		return true
	default:
	}
	select {
	case <-c.recv:
		return true
	case <-c.done:
		return false
	}
}

func (c *Conn) giveRecv() { c.recv <- struct{}{} }

// failure returns why the session is over at this end, or nil.
func (c *Conn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}
