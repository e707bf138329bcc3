package qpconn

import (
	"context"
	"errors"
	"time"

	"github.com/goiwarp/iwarp/transport"
)

// A Waiter is a goroutine that waits for the outcome of work. It is told apart from others by
// comparing, so it is a pointer.
type Waiter interface {
	// Done reports whether the wait is over. It may be asked at any time.
	Done() bool
	// Enlist asks for a token when Done may have become true, and Delist takes that back: a
	// Waiter that receives asks for none, since it looks for itself, or is nudged.
	Enlist()
	Delist()
	// Token returns a channel of capacity one. What is sent there is a hint: the Waiter looks
	// whether it is done, or may receive, and else waits on.
	Token() chan struct{}
}

// A Plan is how a Waiter that receives waits: it polls for a time, and then sleeps.
type Plan struct {
	Poll  time.Duration
	Sleep transport.Wait // Park or Block
}

// Wait returns when w is done or ctx has ended. Meanwhile it receives, if no other goroutine
// does.
func (c *Conn) Wait(ctx context.Context, w Waiter, p Plan) {
	holds := c.come(w)
	poll := polling{limit: p.Poll}
	var stop func() bool // of the nudge at the end of ctx
	for !w.Done() && ctx.Err() == nil {
		switch {
		case !holds:
			holds = c.sleep(ctx, w)
		case stop == nil && ctx.Done() != nil:
			stop = context.AfterFunc(ctx, c.nudge)
		default:
			holds = c.receiveFor(w, p.Sleep, &poll)
		}
	}
	if stop != nil {
		stop()
	}
	c.leave(w)
}

// come reports whether w may receive. If not, it is queued for that.
func (c *Conn) come(w Waiter) (holds bool) {
	c.mu.Lock()
	d := c.arbiter.come(w)
	if d&doRead != 0 {
		c.pace.came()
	}
	d = c.act(d)
	if d&doSend != 0 {
		c.send(false)
	}
	return d&doRead != 0
}

func (c *Conn) leave(w Waiter) {
	c.mu.Lock()
	c.pace.waits++
	c.act(c.arbiter.leave(w, c.arbiter.holds(w) && c.pace.leaves()))
}

// sleep waits for a token, and reports whether w may receive now.
func (c *Conn) sleep(ctx context.Context, w Waiter) (holds bool) {
	if !sleep(ctx, w) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.arbiter.holds(w)
}

// Sleep returns when w is done or ctx has ended. It is [Conn.Wait] where there is no connection
// on which w could receive.
func Sleep(ctx context.Context, w Waiter) {
	for !w.Done() && ctx.Err() == nil {
		sleep(ctx, w)
	}
}

// sleep waits for a token, and reports whether there was one.
func sleep(ctx context.Context, w Waiter) (token bool) {
	w.Enlist()
	defer w.Delist()
	if w.Done() {
		return false
	}
	select {
	case <-w.Token():
		return true
	case <-ctx.Done():
		return false
	}
}

// receiveFor receives once for w, which has the right to, or sends what was offered to it. It
// reports whether w still has the right.
func (c *Conn) receiveFor(w Waiter, how transport.Wait, poll *polling) (holds bool) {
	c.mu.Lock()
	d := c.act(c.arbiter.empty(false))
	switch {
	case d&doSend != 0:
		c.send(false)
		return true
	case d&doPark == 0:
		return false
	case w.Done(): // once more: from now on it is woken
		return true
	}
	if poll.polls() {
		how = transport.NoWait
	}
	err := c.llp.Receive(c.stream, how)
	if errors.Is(err, transport.ErrAgain) {
		yield()
	} else {
		poll.began = time.Time{}
	}
	return c.received(err)
}

// polling is how long a Waiter has polled.
type polling struct {
	limit time.Duration
	began time.Time // zero: it has not, since it slept
}

func (p *polling) polls() bool {
	if p.limit <= 0 {
		return false
	}
	if p.began.IsZero() {
		p.began = time.Now()
		return true
	}
	return time.Since(p.began) < p.limit
}
