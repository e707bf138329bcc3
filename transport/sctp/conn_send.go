package sctp

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/freelist"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/transport"
)

// A batch holds at most batchSize octets and batchLen segments.
const (
	batchSize = 128 << 10
	batchLen  = 256
)

// A batch contains, one after the other, messages that were appended and are not yet sent.
type batch struct {
	buf  [batchSize]byte
	ends [batchLen]int
	n    int // number of ends
	sent int // how many of n were sent
}

var batches = freelist.List[batch]{Retain: 8, New: func() *batch { return new(batch) }}

// end returns where message i ends; it begins where the previous message ends.
func (b *batch) end(i int) int {
	if i < 0 {
		return 0
	}
	return b.ends[i]
}

// Append implements [transport.LLP]: it copies one segment into the batch. An empty segment, or
// one longer than MaxULPDU, ends the sending half, which Flush reports (RFC 5043 section 9).
func (c *Conn) Append(head []byte, payload [][]byte, _ bool) bool {
	n := len(head)
	for _, p := range payload {
		n += len(p)
	}
	if (n == 0 || n > c.limit) && c.sendErr == nil {
		c.failSend(fmt.Errorf("sctp: a segment of %d octets, want 1 to %d", n, c.limit))
	}
	if c.sendErr != nil {
		return true
	}
	if c.out == nil {
		c.out = batches.Get()
	}
	b := c.out
	at := b.end(b.n - 1)
	if b.n == batchLen || at+ssnSize+n > batchSize {
		return false
	}
	to := append(b.buf[at:at+ssnSize], head...)
	raceorder.Lock() // a peer may write to the payload
	for _, p := range payload {
		to = append(to, p...)
	}
	raceorder.Unlock()
	b.ends[b.n] = at + ssnSize + n
	b.n++
	return true
}

// Stage does nothing: all is copied already.
func (c *Conn) Stage() {}

// Flush implements [transport.LLP]: it sends the batch.
func (c *Conn) Flush(wait bool) error {
	for c.sendErr == nil && c.out != nil {
		err := c.flush(c.out)
		switch {
		case err == nil:
			c.release()
		case !errors.Is(err, transport.ErrAgain):
			c.failSend(err)
		case !wait:
			return err
		default:
			c.s.Room(c.done)
		}
	}
	return c.sendErr
}

// flush sends as many messages as there is room for.
func (c *Conn) flush(b *batch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.heard && c.ssn == 1 { // later, the Terminate would have to wait for the segments as well
		c.heard = c.s.Acked(atOnce)
	}
	for b.sent < b.n {
		if c.closed != nil {
			return c.closed
		}
		if c.terminated {
			return errTerminated
		}
		if err := c.send(PPIDSegment, b.buf[b.end(b.sent-1):b.end(b.sent)], false); err != nil {
			return err
		}
		b.sent++
	}
	return nil
}

// atOnce is a closed channel, which ends a wait at once.
var atOnce = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

var errTerminated = errors.New("sctp: this end has terminated the session")

func (c *Conn) failSend(err error) {
	c.sendErr = err
	c.release()
}

func (c *Conn) release() {
	if c.out != nil {
		c.out.n, c.out.sent = 0, 0
		batches.Put(c.out)
		c.out = nil
	}
}
