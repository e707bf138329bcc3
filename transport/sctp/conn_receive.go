package sctp

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/goiwarp/iwarp/internal/freelist"
	"github.com/goiwarp/iwarp/transport"
)

// readSize holds the longest message that is accepted: what fits the largest Ethernet
// frame.
const readSize = 9 << 10

type readBuffer [readSize]byte

var readBuffers = freelist.List[readBuffer]{Retain: 8, New: func() *readBuffer { return new(readBuffer) }}

// Receive implements [transport.LLP]: it hands a segment to p, or the segments that were held
// back. It cannot tell without waiting whether one has arrived.
func (c *Conn) Receive(p transport.Placer, wait transport.Wait) error {
	if wait == transport.NoWait {
		return transport.ErrAgain
	}
	if !c.takeRecv() {
		return c.failure()
	}
	defer c.giveRecv()
	if c.recvErr != nil {
		return c.recvErr
	}
	err := c.receive(p)
	switch {
	case err == nil, errors.Is(err, transport.ErrStall):
		return err
	case errors.Is(err, transport.ErrWoken) && c.failure() == nil:
		return err
	}
	c.giveUp(err)
	return c.recvErr
}

// giveUp records why nothing is delivered any more.
func (c *Conn) giveUp(err error) {
	if closed := c.failure(); closed != nil {
		err = closed
	}
	c.recvErr, c.session.early = err, nil
}

func (c *Conn) receive(p transport.Placer) error {
	if len(c.session.early) > 0 {
		return c.deliverEarly(p)
	}
	buf := readBuffers.Get()
	defer readBuffers.Put(buf)
	m, err := c.read(buf)
	if err != nil {
		return err
	}
	err = p.Segment(m.seq, m.ulp)
	if errors.Is(err, transport.ErrStall) {
		c.session.early = []message{{seq: m.seq, ulp: bytes.Clone(m.ulp)}}
	}
	return err
}

// deliverEarly delivers what was held back: segments that arrived before the Accept, or that
// the Placer did not accept.
func (c *Conn) deliverEarly(p transport.Placer) error {
	for len(c.session.early) > 0 {
		m := c.session.early[0]
		if err := p.Segment(m.seq, m.ulp); err != nil {
			return err
		}
		c.session.early = c.session.early[1:]
	}
	return nil
}

// read returns the next segment, which is valid until the next call.
func (c *Conn) read(buf *readBuffer) (message, error) {
	for {
		if err := c.failure(); err != nil {
			return message{}, err
		}
		if c.session.ended() {
			return message{}, io.EOF
		}
		n, ppid, err := c.s.Receive(buf[:])
		if err != nil {
			return message{}, err
		}
		seq, segment, _, err := c.session.receive(ppid, buf[:n])
		if err != nil {
			return message{}, err
		}
		if segment != nil {
			return message{seq: seq, ulp: segment}, nil
		}
	}
}

// Discard implements [transport.LLP]: it reads up to the peer's Terminate, and discards everything.
func (c *Conn) Discard() error {
	if !c.takeRecv() {
		return c.failure()
	}
	defer c.giveRecv()
	if errors.Is(c.recvErr, io.EOF) {
		return c.recvErr
	}
	if c.recvErr == nil {
		c.giveUp(errDiscarded)
	}
	buf := readBuffers.Get()
	defer readBuffers.Put(buf)
	for {
		if _, err := c.read(buf); err != nil && !errors.Is(err, transport.ErrWoken) {
			return err
		}
	}
}

var errDiscarded = errors.New("sctp: the receiving half was given up")

// drainTime is how long a peer that has not ended its half of a closed session may be silent
// before its streams are given up. A peer that ends it later believes that they are free, and begins
// another session on them in vain. So drainTime is longer than an association survives an outage.
const drainTime = time.Minute

// mostLate is how late a running process may notice the end of drainTime, and how long a process that was stopped reads on.
const mostLate = time.Second

// drain reads the peer's half of a closed session to its end, and releases the streams. What has arrived while this process
// was stopped is read first.
func (c *Conn) drain() {
	<-c.recv
	defer c.giveRecv()
	buf := readBuffers.Get()
	defer readBuffers.Put(buf)
	heard := time.Now()
	t := time.AfterFunc(drainTime, c.s.Wake)
	defer t.Stop()
	for !c.session.ended() && time.Since(heard) < drainTime {
		n, ppid, err := c.s.Receive(buf[:])
		if err == nil {
			heard = time.Now()
			t.Reset(drainTime)
			_, _, _, err = c.session.receive(ppid, buf[:n])
		}
		if err != nil && !errors.Is(err, transport.ErrWoken) {
			break
		}
		if late := time.Since(heard) - drainTime; late > mostLate {
			heard = heard.Add(late + mostLate)
			t.Reset(mostLate)
		}
	}
	ended := c.session.ended()
	if ended {
		c.hear() // the association may end with the session
	}
	c.s.Release(ended)
}
