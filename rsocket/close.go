package rsocket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/goiwarp/iwarp/internal/endwait"
)

// linger is how long Close waits for the peer to take what was written.
const linger = 5 * time.Second

// Close ends the stream in both directions: it sends what was written, tells the peer, and ends the
// connection. Octets from the peer that were not read are lost. If the peer does not take what was
// written within five seconds, the rest is lost, too, and the error matches os.ErrDeadlineExceeded. The error also matches it
// if the peer has not closed the stream and does not end its half of the connection within the RNIC's CloseTimeout: it is then
// unknown whether the peer received what was sent. If the connection ends before everything was sent, the error is the reason, or
// matches syscall.ECONNRESET.
//
// Inside a method of a Buffer, Close does not wait: it returns an error, and the rest is done after that method has returned.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return c.opError("close", net.ErrClosed)
	}
	c.closed = true
	c.rd.setDeadline(time.Time{})
	c.wr.setDeadline(time.Time{})
	c.stream.Disconnect()
	c.pump()
	c.wake()
	c.mu.Unlock()
	if err := endwait.OutsideBuffer("the connection ends"); err != nil {
		go func() { _ = c.ends() }()
		return c.opError("close", err)
	}
	return c.opError("close", c.ends())
}

// ends is the part of Close that waits.
func (c *Conn) ends() error {
	c.mu.Lock()
	err := c.flush()
	c.mu.Unlock()
	ended := c.qp.Close()
	<-c.done
	if err == nil {
		err = c.untaken(ended)
	}
	return err
}

// untaken returns the reason why something that was written was never sent, or may not have reached the peer: octets that were sent may
// still be in flight until the peer ends its half. The connection has ended, and ended is the error of QP.Close. It is no failure that
// the peer sends until it learns of the end.
func (c *Conn) untaken(ended error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(ended, os.ErrDeadlineExceeded) && !c.stream.Reset():
		return notTaken(ended)
	case !c.stream.Unsent():
		return nil
	case c.cause != nil:
		return c.cause
	}
	return errReset
}

// flush waits until all has been sent, or cannot be. mu is held.
func (c *Conn) flush() error {
	timer := time.AfterFunc(linger, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.late = true
		c.rouse(&c.end)
	})
	defer timer.Stop()
	for c.state == running && !c.stream.Flushed() && !c.late {
		c.await(&c.end)
	}
	if c.state != running || c.stream.Flushed() {
		return nil
	}
	c.disconnectNow()
	return notTaken(os.ErrDeadlineExceeded)
}

func notTaken(err error) error { return fmt.Errorf("the peer has not taken what was written: %w", err) }

// disconnectNow drops what is queued and sends DISCONNECT: a program that uses librdmacm may wait for ever
// if the connection ends without that message. mu is held.
func (c *Conn) disconnectNow() {
	c.stream.Disconnect()
	c.stream.Abandon()
	c.pump()
}

// drop ends a connection that was never handed to the program.
func (c *Conn) drop() {
	c.mu.Lock()
	c.closed = true
	c.disconnectNow()
	c.mu.Unlock()
	_ = c.qp.Close()
	<-c.done
}
