package qpconn

import (
	"context"
	"errors"
	"time"

	"github.com/goiwarp/iwarp/transport"
)

// A Waiter represents a goroutine that waits for the outcome of work. Waiters are compared, so
// its dynamic type must be a pointer.
type Waiter interface {
	// Done reports whether the wait is over. It may be called at any time.
	Done() bool
	// Enlist requests a token for when Done may have become true, and Delist withdraws the request.
	// A Waiter that receives requests none, because it checks Done itself, or is nudged.
	Enlist()
	Delist()
	// Token returns the Waiter's Token. A call of Tell is a hint: the Waiter checks whether it is
	// done or may receive, and otherwise continues to wait.
	Token() Token
}

// A Plan describes how a receiving Waiter waits: it polls for a time, and then sleeps.
type Plan struct {
	Poll  time.Duration
	Sleep transport.Wait // Park or Block
}

// Wait returns when w is done or ctx has ended. Meanwhile it receives, if no other goroutine
// does. If c is nil, it only sleeps.
func (c *Conn) Wait(ctx context.Context, w Waiter, p Plan) {
	if c == nil {
		sleepUntilDone(ctx, w)
		return
	}
	done := ctx.Done() // a nil ctx panics here, before w holds or has queued for a right
	holds := c.come(w)
	poll := polling{limit: p.Poll}
	var stop func() bool // cancels the nudge at the end of ctx
	for !w.Done() && ctx.Err() == nil {
		switch {
		case !holds:
			holds = c.sleep(ctx, w)
		case stop == nil && done != nil:
			stop = context.AfterFunc(ctx, c.nudge)
		default:
			holds = c.receiveFor(ctx, w, p.Sleep, &poll)
		}
	}
	if stop != nil {
		stop()
	}
	c.leave(w)
}

// come requests the right to receive for w. It reports whether w has the right now; otherwise w
// is queued for it.
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

// sleep waits for a token, and reports whether w has the right to receive now.
func (c *Conn) sleep(ctx context.Context, w Waiter) (holds bool) {
	if !sleep(ctx, w) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.arbiter.holds(w)
}

// sleepUntilDone returns when w is done or ctx has ended. It implements [Conn.Wait] when there
// is no connection on which w could receive.
func sleepUntilDone(ctx context.Context, w Waiter) {
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

// receiveFor receives once for w, which has the right to receive, or sends a share if the right
// to send was offered. It reports whether w still has the right to receive.
func (c *Conn) receiveFor(ctx context.Context, w Waiter, how transport.Wait, poll *polling) (holds bool) {
	c.mu.Lock()
	d := c.act(c.arbiter.empty(false))
	switch {
	case d&doSend != 0:
		c.send(false)
		return true
	case d&doPark == 0:
		return false
	case w.Done() || ctx.Err() != nil: // checked once more; if it becomes true from now on, w is woken
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

// A polling measures how long a Waiter has polled.
type polling struct {
	limit time.Duration
	began time.Time // zero: it has not polled since it last slept or received
}

// polls reports whether the Waiter is to poll, rather than sleep.
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
