package mpa

import (
	"errors"
	"io"

	"github.com/goiwarp/iwarp/transport"
)

// Receive reads once, and hands the segments of whole, verified FPDUs to p, as LLP says. The
// Conn keeps the memory that it reads into until there is nothing more, or Arm.
//
// Before it waits it asks the stream for no more than it can do at once, so that an idle Conn
// holds little memory; once a lot comes, it reads a lot.
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

// isPassing reports whether err says no more than that nothing has come.
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

// deliver hands up every whole FPDU of the read buffer. It reports whether there was any.
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

// ready reports whether there is a whole FPDU: one that was held back, or else the next
// of the read buffer.
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

// broken tells what is wrong with the framing, if anything is.
func (c *Conn) broken() error {
	if c.fault == nil {
		return nil
	}
	return c.fault
}

// arrivals is a Conn as the [transport.SegmentBatch] of what its read buffer holds: of its own, so that
// its method is not the user's.
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
	tells := c.s.Gather() > 0 // a copying stream cannot tell without waiting
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

// readLot reads as much as there is, without parking, and what was predicted straight
// into place.
func (c *Conn) readLot(p transport.Placer) error {
	c.in.resize(large)
	if !c.predicts() {
		return c.readOnce(transport.NoWait)
	}
	return c.readPredicted(p)
}

// resizeToPark takes memory to park with: small if little comes, or if what comes can
// go straight into place, and the rest of the FPDU has room in it.
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

// came sorts out what a read has returned.
func (c *Conn) came(n int, err error) error {
	passing := err == nil || isPassing(err)
	c.dry = n == 0 && errors.Is(err, transport.ErrAgain)
	switch {
	case n > 0:
		// What did not fill a small buffer, or would not have, was all there was.
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

// readError is what the end of the stream means: the peer's graceful end at the
// boundary of an FPDU, a lost connection anywhere else (RFC 5044 sections 7.2
// and 8).
func (c *Conn) readError(err error) error {
	if !errors.Is(err, io.EOF) || c.aborted.Load() != nil || c.closed.Load() {
		return c.lost(err)
	}
	if len(c.in.octets()) == 0 {
		return io.EOF
	}
	return c.lost(io.ErrUnexpectedEOF)
}

// Discard reads to the end of the stream and looks at nothing, as LLP says.
// Nothing is delivered any more.
func (c *Conn) Discard() error {
	if errors.Is(c.recvErr, io.EOF) {
		return c.recvErr
	}
	if c.recvErr == nil {
		c.recvErr = errDiscarded
	}
	c.held = fpdu{}
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
