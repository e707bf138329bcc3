package rsocket

import (
	"context"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// An inbox has the receives that are posted again together.
type inbox struct {
	wrs  [16]iwarp.RecvWR
	sges [16]iwarp.SGE
	n    int
}

// run takes completions until the QP has ended.
func (c *Conn) run() {
	defer close(c.done)
	for c.take() {
	}
	if c.failed() {
		_ = c.qp.Close() // a reset could overtake the DISCONNECT that was sent
	}
	<-c.qp.Done()
	c.mu.Lock()
	for n := c.mem.cq.Poll(c.wcs[:]); n > 0; n = c.mem.cq.Poll(c.wcs[:]) {
		c.completions(n)
	}
	if c.cause == nil {
		c.cause = c.qp.Err()
	}
	c.state = ended
	c.wake()
	c.mu.Unlock()
	_ = c.mem.release()
}

// take waits for completions, and does what follows from them. It reports false when the QP ends.
func (c *Conn) take() bool {
	n, err := c.mem.cq.Wait(context.Background(), c.wcs[:])
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.stops()
		return false
	}
	c.completions(n)
	c.postReceives()
	c.pump()
	return c.state == running
}

// completions handles n completions. mu is held.
func (c *Conn) completions(n int) {
	for i := range c.wcs[:n] {
		wc := &c.wcs[i]
		switch {
		case wc.Status != iwarp.StatusSuccess:
			c.stops()
		case wc.Op == iwarp.OpRecv:
			c.message(int(wc.ID), int(wc.Len))
		case wc.Op == iwarp.OpSend:
			for ; c.completed < wc.ID; c.completed++ {
				c.stream.Completed()
			}
			c.wr.cond.Signal()
			c.gone.Broadcast()
		default:
			c.fail(errNoMessage)
		}
	}
}

// message handles a message of the peer. mu is held.
func (c *Conn) message(i, n int) {
	m, err := wire.ParseMessage(c.mem.message(i, n), c.order)
	if err == nil && c.cause == nil {
		err = c.stream.Message(m, &c.mem.table)
	}
	if err != nil {
		c.fail(err)
		return
	}
	c.receiveAgain(i)
	if m.Op() == wire.OpCtrl {
		c.wake()
	}
	c.rd.cond.Signal()
}

// receiveAgain posts a receive again, with others. mu is held.
func (c *Conn) receiveAgain(i int) {
	if c.state != running {
		return
	}
	in := &c.in
	in.sges[in.n] = c.mem.receive(i)
	in.wrs[in.n] = iwarp.RecvWR{ID: uint64(i), Local: in.sges[in.n : in.n+1]}
	in.n++
}

// postReceives posts them. It fails when the peer has ended the connection; what has come before is in
// the CQ. mu is held.
func (c *Conn) postReceives() {
	n := c.in.n
	if c.in.n = 0; n > 0 && c.state == running && c.qp.PostRecv(c.in.wrs[:n]...) != nil {
		c.stops()
	}
}

// fail ends the connection because of what the peer has sent. mu is held.
func (c *Conn) fail(err error) {
	if c.cause == nil {
		c.cause = protocolError(err)
		c.disconnectNow()
		c.stops()
	}
}

// failed reports whether the connection ends because of what the peer has sent.
func (c *Conn) failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause != nil
}
