package rsocket

import (
	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// An inbox holds the receives that are posted again together.
type inbox struct {
	wrs  [16]iwarp.RecvWR
	sges [16]iwarp.SGE
	n    int
}

// run waits for the end of the QP, and handles the completions that precede it.
func (c *Conn) run() {
	defer close(c.done)
	<-c.qp.Done()
	c.mu.Lock()
	c.stops()
	for c.taking {
		c.wake()
		c.left.Wait()
	}
	for n := c.mem.cq.Poll(c.wcs[:]); n > 0; n = c.mem.cq.Poll(c.wcs[:]) {
		c.completions(n)
	}
	if c.cause == nil {
		c.cause = endOf(c.qp.Err())
	}
	c.state = ended
	c.wake()
	c.mu.Unlock()
	_ = c.mem.release()
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
		case wc.Op == iwarp.OpSend || wc.Op == iwarp.OpRDMAWrite:
			for ; c.completed < wc.ID; c.completed++ {
				c.stream.Completed()
			}
			c.wr.cond.Signal()
			c.end.cond.Signal()
		default:
			c.fail(errNoMessage)
		}
	}
}

// message handles a message of the peer. mu is held.
func (c *Conn) message(i, n int) {
	m, err := wire.ParseMessage(c.mem.message(i, n), c.order)
	if err == nil && c.cause == nil {
		err = c.stream.Message(m, c.mem.table)
	}
	if err != nil {
		c.fail(err)
		return
	}
	c.receiveAgain(i)
	switch m.Op() {
	case wire.OpData:
		c.rd.cond.Signal()
	case wire.OpSGL:
		c.wr.cond.Signal()
	default:
		c.wake()
	}
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

// postReceives posts the receives of the inbox. Posting fails when the peer has ended the connection; what came before is in
// the CQ. mu is held.
func (c *Conn) postReceives() {
	n := c.in.n
	if c.in.n = 0; n > 0 && c.state == running && c.qp.PostRecv(c.in.wrs[:n]...) != nil {
		c.stops()
	}
}

// fail ends the connection because of what the peer has sent. mu is held.
func (c *Conn) fail(err error) { c.endBy(protocolError(err)) }

// endBy ends the connection because of an error that this side has found. mu is held.
func (c *Conn) endBy(err error) {
	if c.cause == nil {
		c.cause = err
		c.disconnectNow()
		c.stops()
		go func() { _ = c.qp.Close() }() // it waits for the peer; Abort could overtake the DISCONNECT that was sent
	}
}
