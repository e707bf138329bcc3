package qpconn

import (
	"errors"
	"io"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// read is the reader: it receives until no more input has arrived for a while, until a waiter
// wants to receive, or until the connection has ended.
func (c *Conn) read() {
	for c.readOnce() {
	}
}

// readOnce receives once. It reports whether the reader still has the right to receive.
func (c *Conn) readOnce() (holds bool) {
	if c.discards() {
		c.die(c.llp.Discard())
		c.mu.Lock()
		c.act(c.arbiter.discarded())
		return false
	}
	err := c.llp.Receive(c.stream, transport.NoWait)
	if !errors.Is(err, transport.ErrAgain) {
		return c.received(err)
	}
	c.mu.Lock()
	d := c.act(c.arbiter.empty(c.pace.lingers()))
	switch {
	case d&doSend != 0:
		c.send(false)
		return true
	case d&doPark == 0:
		return false
	}
	return c.received(c.llp.Receive(c.stream, transport.Park))
}

// discards reports whether input is to be discarded.
func (c *Conn) discards() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.arbiter.phase == phaseDiscard
}

// received handles the result of a Receive. The caller is the holder of the right to receive;
// received reports whether it still is.
func (c *Conn) received(err error) (holds bool) {
	c.mu.Lock()
	open, draining := c.arbiter.phase == phaseOpen, c.ending.stage == Draining
	c.act(c.arbiter.found())
	if errors.Is(err, transport.ErrWoken) || errors.Is(err, transport.ErrAgain) {
		return true
	}
	c.owner.Received()
	switch {
	case err == nil:
		c.goesOn(open, draining)
		return true
	case errors.Is(err, transport.ErrStall):
		c.goesOn(open, draining) // what came before the message that has to wait
		return c.stall()
	case errors.Is(err, rdmap.ErrLate) && c.late(err):
		return true
	}
	how := peerEnded
	if c.stream.MidMessage() {
		how = peerCut
	}
	c.mu.Lock()
	c.act(c.arbiter.over()) // from now on another goroutine may have the right
	if errors.Is(err, io.EOF) {
		c.peerEnds(how)
	} else {
		c.receiveFailed(err)
	}
	return false
}

// goesOn lets the sender continue after a read: a message may be ready to be sent, or all work may be
// done. The caller has the right to receive; open and draining describe the connection after the read.
func (c *Conn) goesOn(open, draining bool) {
	if open && (c.hears() || c.stream.Pending() || draining) {
		c.Post()
	}
}

// hears reports true once, when the first segment has arrived: from then on a responder may send.
func (c *Conn) hears() bool {
	if c.heard || c.Fenced() {
		return false
	}
	c.heard = true
	return true
}

// Fenced reports whether this side may not send yet, because it is a responder that has received
// nothing so far (RFC 5044 section 7.1.2).
func (c *Conn) Fenced() bool {
	f, ok := c.llp.(interface{ Fenced() bool })
	return ok && f.Fenced()
}
