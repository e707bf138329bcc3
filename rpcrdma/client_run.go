package rpcrdma

import (
	"context"
	"errors"
	"slices"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

// serve takes completions until the QP has ended, and releases everything.
func (c *Client) serve() {
	c.tasks.Go(c.run)
	<-c.qp.Done()
	_ = c.cq.Close() // ends run, after all completions
	c.mu.Lock()
	c.close()
	c.mu.Unlock()
	c.tasks.Wait()
	c.doing.Wait()
	c.release()
	close(c.done)
}

// run handles completions until the CQ is closed.
func (c *Client) run() {
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
		c.mu.Unlock()
	}
}

// completed handles a completion. mu is held, as in the functions below.
func (c *Client) completed(wc *iwarp.WC) {
	i := int(uint32(wc.ID))
	switch {
	case wc.Status != iwarp.StatusSuccess:
		c.close()
	case wc.ID>>32 == kindReceive:
		c.message(i, c.received[i*c.inline:][:wc.Len])
	default:
		c.leave(&c.slots[i])
	}
}

// message hands a message of the server to the call with its XID. It drops a message without an XID, and one whose call
// was given up or does not exist.
func (c *Client) message(receive int, b []byte) {
	xid, version, credits, ok := wire.Peek(b)
	if !ok {
		c.again(receive)
		return
	}
	s := c.pending[xid]
	if s != nil && version == wire.Version {
		c.grant = int(min(max(credits, 1), uint32(len(c.slots)))) // 0 would mean that the server takes no more calls
	}
	switch {
	case s == nil:
		c.again(receive)
	case s.state == abandoned:
		c.again(receive)
		c.over(s)
	default:
		delete(c.pending, xid)
		s.state = answered
		s.answers <- answer{receive: receive, len: len(b)}
	}
	c.admit()
}

// again posts a receive again.
func (c *Client) again(receive int) {
	c.recvWR[0] = c.receive(receive)
	c.endIf(c.qp.PostRecv(c.recvWR[:]...))
}

// endIf ends the connection if a post has failed.
func (c *Client) endIf(err error) {
	if err == nil {
		return
	}
	if c.qp.State() != iwarp.StateRTS {
		c.close() // the QP has the error
		return
	}
	c.fail(err)
}

// over ends a call, and releases its credit and its memory. The receive of its reply has been posted again.
func (c *Client) over(s *slot) {
	s.mem = nil
	if c.pending[s.xid] == s {
		delete(c.pending, s.xid)
	}
	c.calls--
	c.leave(s)
}

// leave ends one of the two uses of a slot, by its call or by its Send.
func (c *Client) leave(s *slot) {
	if s.uses--; s.uses == 0 {
		c.idle = append(c.idle, s)
		c.admit()
	}
}

// A turn is a call that waits for a slot.
type turn struct{ slots chan *slot }

// admit gives slots to the calls that wait for them.
func (c *Client) admit() {
	for len(c.turns) > 0 && c.maySend() {
		pop(&c.turns).slots <- c.take()
	}
}

// maySend reports whether another call may be sent now.
func (c *Client) maySend() bool { return c.calls < c.grant && len(c.idle) > 0 && c.stage == serving }

// take begins a call.
func (c *Client) take() *slot {
	s := c.idle[len(c.idle)-1]
	c.idle = c.idle[:len(c.idle)-1]
	c.calls++
	s.state, s.uses = calling, 1
	return s
}

// enter waits for a slot. A call that has entered must leave by c.doing.Done.
func (c *Client) enter(ctx context.Context) (*slot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	if c.stage == closing {
		c.mu.Unlock()
		return nil, c.ended(ctx)
	}
	c.doing.Add(1)
	if len(c.turns) == 0 && c.maySend() {
		defer c.mu.Unlock()
		return c.take(), nil
	}
	t := &turn{make(chan *slot, 1)}
	c.turns = append(c.turns, t)
	c.mu.Unlock()
	var err error
	select {
	case s := <-t.slots:
		return s, nil
	case <-c.lost:
		err = c.ended(ctx)
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.withdraw(t)
	c.doing.Done()
	return nil, err
}

// withdraw ends the wait of a call, or releases the slot that it has received meanwhile.
func (c *Client) withdraw(t *turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.turns, t); i >= 0 {
		c.turns = slices.Delete(c.turns, i, i+1)
		return
	}
	c.over(<-t.slots)
}

var errSameXID = errors.New("rpcrdma: another call has the same XID, and no reply yet")

// post sends the call of a slot.
func (c *Client) post(ctx context.Context, s *slot) error {
	c.mu.Lock()
	if c.stage == closing {
		c.mu.Unlock()
		return c.ended(ctx)
	}
	defer c.mu.Unlock()
	if c.pending[s.xid] != nil {
		return errSameXID
	}
	c.pending[s.xid] = s
	s.uses++
	s.wr[0] = iwarp.SendWR{ID: kindSend<<32 | uint64(s.index), Op: iwarp.OpSend, Local: s.from[:]}
	s.from[0] = c.sendMR.Slice(s.index*c.inline, len(s.buf))
	c.endIf(c.qp.PostSend(s.wr[:]...)) // if it fails, the wait for the reply ends with the connection
	return nil
}
