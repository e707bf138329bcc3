package rpcrdma

import (
	"context"

	"github.com/goiwarp/iwarp"
)

// Kinds of work requests, in the upper half of an ID. The lower half is an index.
const (
	kindReceive = iota
	kindRead
	kindSend
)

// serve takes completions until the QP has ended, and releases everything.
func (c *Conn) serve() {
	c.tasks.Go(c.run)
	<-c.qp.Done()
	_ = c.cq.Close() // ends run, after all completions
	c.mu.Lock()
	c.reach(closing)
	c.timer.Stop()
	c.mu.Unlock()
	c.tasks.Wait()
	c.reclaim()
	c.release()
	close(c.done)
	if c.onEnd != nil {
		c.onEnd(c)
	}
}

// run handles completions until the CQ is closed.
func (c *Conn) run() {
	var wcs [16]iwarp.WC
	for {
		n, err := c.cq.Wait(context.Background(), wcs[:])
		if err != nil {
			return
		}
		c.mu.Lock()
		for i := range wcs[:n] {
			c.completed(&wcs[i])
		}
		c.unlock()
	}
}

// completed handles a completion. mu is held.
func (c *Conn) completed(wc *iwarp.WC) {
	switch wc.Status {
	case iwarp.StatusSuccess:
	case iwarp.StatusTimeout: // of a Read, which does not end the QP
		c.fail(wc.Err())
		return
	default:
		c.reach(closing) // the QP ends
		return
	}
	i := uint32(wc.ID)
	switch wc.ID >> 32 {
	case kindReceive:
		c.message(&c.calls[i], int(wc.Len))
	case kindRead:
		c.free++
		c.reading--
		c.pulled(&c.calls[i])
	case kindSend:
		c.sent(&c.outs[i])
	}
}

// unlock posts what can be posted, unlocks mu, and then requests and releases memory, which may involve
// other connections.
func (c *Conn) unlock() {
	for {
		c.flush()
		switch {
		case len(c.spent) > 0:
			m := pop(&c.spent)
			c.mu.Unlock()
			p := m.acc.p
			p.put(m)
			p.deliver()
		case len(c.wants) > 0:
			k := pop(&c.wants)
			c.mu.Unlock()
			c.callMemory.ask(&k.wait, k.plan.Len, k)
		default:
			c.mu.Unlock()
			return
		}
		c.mu.Lock()
	}
}

// pop takes the first element.
func pop[T any](s *[]T) T {
	first := (*s)[0]
	n := copy(*s, (*s)[1:])
	clear((*s)[n:])
	*s = (*s)[:n]
	return first
}

// flush posts replies and RDMA Reads while the send queue has room. It posts no more Reads than may be outstanding, since
// replies behind them would wait. mu is held.
func (c *Conn) flush() {
	for len(c.posts) > 0 && len(c.posts[0].wrs) <= c.free {
		o := pop(&c.posts)
		c.free -= len(o.wrs)
		o.posted()
		c.endIf(c.qp.PostSend(o.wrs...))
		c.settle()
	}
	for c.stage < closing && len(c.pulls) > 0 && c.reading < c.ord && c.free > 0 {
		c.pull(c.pulls[0])
	}
}

// endIf ends the connection if a post has failed.
func (c *Conn) endIf(err error) {
	if err == nil {
		return
	}
	if c.qp.State() != iwarp.StateRTS {
		c.reach(closing) // the QP has the error
		return
	}
	c.fail(err)
}
