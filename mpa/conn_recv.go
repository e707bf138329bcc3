package mpa

import (
	"errors"
	"io"

	"github.com/goiwarp/iwarp/transport"
)

// Receive implements [transport.LLP]: it reads once, and hands the segments of whole, verified FPDUs
// to p. The Conn keeps the memory that it reads into until nothing is left to read, or until Arm.
//
// Before it waits it makes its buffer as small as possible, so that an idle Conn holds little
// memory. If much data arrives, it reads much at a time.
func (c *Conn) Receive(p transport.Placer, wait transport.Wait) error {
	if c.recvErr != nil {
		return c.recvErr
	}
	err := c.receive(p, wait)
	if err != nil && !isPassing(err) && !errors.Is(err, transport.ErrStall) {
		c.recvErr = err
		c.in.release()
	}
	if err != nil {
		c.in.shrink()
	}
	return err
}

// isPassing reports whether err only says that nothing has arrived.
func isPassing(err error) bool {
	return errors.Is(err, transport.ErrAgain) || errors.Is(err, transport.ErrWoken)
}

func (c *Conn) receive(p transport.Placer, wait transport.Wait) error {
	if some, err := c.deliver(p); some || err != nil { // what was held back
		return err
	}
	if err := c.read(p, wait); err != nil {
		return err
	}
	_, err := c.deliver(p)
	return err
}

// deliver delivers every whole FPDU of the read buffer. It reports whether there was any.
func (c *Conn) deliver(p transport.Placer) (some bool, err error) {
	c.lent = false
	if !c.ready() {
		return false, c.broken()
	}
	if err := p.Segments(c.seq, (*arrivals)(c)); err != nil {
		return true, err
	}
	return true, c.broken()
}

// ready reports whether there is a whole FPDU: one that was held back, or else the next one
// in the read buffer.
func (c *Conn) ready() bool {
	if c.held.size > 0 {
		return true
	}
	f, fault := c.dec.next(c.in.octets())
	if fault != nil {
		c.fault = fault
		return false
	}
	if f.size == 0 {
		return false
	}
	c.held = f
	if c.fenced.Load() {
		c.fenced.Store(false)
	}
	c.usual = max(c.usual, f.n)
	return true
}

// broken returns the error of the framing, if there is one.
func (c *Conn) broken() error {
	if c.fault == nil {
		return nil
	}
	return c.fault
}

// arrivals is a Conn as the [transport.SegmentBatch] of its read buffer. It is a separate type so that its
// method is not part of the API of Conn.
type arrivals Conn

func (r *arrivals) Next() []byte {
	c := (*Conn)(r)
	if c.lent {
		c.lent = false
		c.seq++
		c.in.drop(c.held.size)
		c.held = fpdu{}
	}
	if !c.ready() {
		return nil
	}
	c.lent = true
	return c.in.octets()[c.held.off:][:c.held.n:c.held.n]
}

// read reads once. Unless wait is NoWait it waits if it must.
func (c *Conn) read(p transport.Placer, wait transport.Wait) error {
	if c.later != nil {
		return c.readError(c.later)
	}
	tells := c.s.Gather() > 0 // a copying stream cannot check for input without waiting
	switch {
	case wait == transport.NoWait && !tells:
		return transport.ErrAgain
	case wait == transport.NoWait && (c.bulk || c.predicts()):
		return c.readLot(p)
	case c.bulk && tells && !c.dry:
		if err := c.readLot(p); !errors.Is(err, transport.ErrAgain) {
			return err
		}
	}
	c.resizeToPark()
	return c.readOnce(wait)
}

// readLot reads as much as there is, without parking, and predicted data directly into
// place.
func (c *Conn) readLot(p transport.Placer) error {
	c.in.resize(large)
	if !c.predicts() {
		return c.readOnce(transport.NoWait)
	}
	return c.readPredicted(p)
}

// resizeToPark chooses the memory to park with. It is small if little data arrives, or if
// data can go directly into place, provided that it has room for the rest of the FPDU.
func (c *Conn) resizeToPark() {
	if (!c.bulk || c.predicted) && len(c.in.octets()) <= smallBuffer/2 {
		c.in.resize(small)
		return
	}
	c.in.resize(medium)
}

func (c *Conn) readOnce(wait transport.Wait) error {
	n, err := c.s.Read(c.in.free(), wait)
	c.in.filled(n)
	return c.came(n, err)
}

// came handles the result of a read.
func (c *Conn) came(n int, err error) error {
	passing := err == nil || isPassing(err)
	c.dry = n == 0 && errors.Is(err, transport.ErrAgain)
	switch {
	case n > 0:
		// A read that did not fill a small buffer, or would not have, has read everything.
		c.bulk = c.in.full() || n > smallBuffer
		if !passing {
			c.later = err
		}
		return nil
	case passing:
		return err
	}
	return c.readError(err)
}

// readError returns the error for the end of the stream: io.EOF, the peer's graceful
// end, at the boundary of an FPDU, and a lost connection anywhere else (RFC 5044
// sections 7.2 and 8).
func (c *Conn) readError(err error) error {
	if !errors.Is(err, io.EOF) || c.aborted.Load() != nil || c.closed.Load() {
		return c.lost(err)
	}
	if len(c.in.octets()) == 0 {
		return io.EOF
	}
	return c.lost(io.ErrUnexpectedEOF)
}

// Discard implements [transport.LLP]: it reads to the end of the stream, and discards
// everything. Nothing is delivered any more.
func (c *Conn) Discard() error {
	if errors.Is(c.recvErr, io.EOF) {
		return c.recvErr
	}
	if c.recvErr == nil {
		c.recvErr = errDiscarded
	}
	c.in.release()
	c.in.resize(medium)
	defer c.in.release()
	for err := c.later; ; {
		if err == nil || errors.Is(err, transport.ErrWoken) {
			_, err = c.s.Read(c.in.free(), transport.Park)
			continue
		}
		return c.readError(err)
	}
}
