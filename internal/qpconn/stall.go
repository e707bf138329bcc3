package qpconn

import "time"

// NoticeAfter is how long a message waits for a receive before NoticeNoReceive.
const NoticeAfter = time.Second

// stalled describes a message that waits for a receive. The mutex of the Conn guards it.
type stalled struct {
	timer *time.Timer // not nil: a message waits
	count uint64      // how often a message has waited
}

// stall gives up the right to receive, because a message found no receive. It reports true if the
// caller keeps the right because the connection is ending.
func (c *Conn) stall() (holds bool) {
	c.mu.Lock()
	d := c.arbiter.stall()
	waits := c.arbiter.rx == rxStalled
	if d = c.act(d); !waits { // the connection is ending, and the Owner may have ended
		return d&doRead != 0
	}
	if c.owner.HasReceive() {
		c.Resume()
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.arbiter.rx == rxStalled && c.stalled.timer == nil {
		c.stalled.count++
		c.stalled.timer = c.startReceiveTimer()
	}
	return false
}

// startReceiveTimer starts the timer of a message that waits for a receive: it causes a notice
// after NoticeAfter, and an error after Config.ReceiveWait. c.mu must be held.
func (c *Conn) startReceiveTimer() *time.Timer {
	var t *time.Timer
	first := min(c.receiveWait, NoticeAfter)
	rest := c.receiveWait - first // guarded by c.mu
	t = time.AfterFunc(first, func() {
		c.mu.Lock()
		switch waits := c.stalled.timer == t && c.ending.stage < Terminating; { // else a receive was posted, or the connection is ending
		case !waits:
			c.mu.Unlock()
		case rest > 0:
			t.Reset(rest)
			rest = 0
			c.mu.Unlock()
			c.owner.Notice(NoticeNoReceive)
		default:
			c.owner.ReceiveOverdue()
			c.resume()
		}
	})
	return t
}

// Resume tells c that a receive was posted, or that a message must not wait for one any longer.
// The caller must call it after that has happened, not before. Resume reports whether a message waited.
func (c *Conn) Resume() (waited bool) {
	c.mu.Lock()
	return c.resume()
}

// resume is Resume with c.mu held, which it releases.
func (c *Conn) resume() (waited bool) {
	d := c.arbiter.resume()
	if d != 0 {
		c.stalled.stop()
	}
	c.act(d)
	return d != 0
}

// ResumeStalled calls Resume if a message waits for a receive, and reports whether one did. The
// caller has ended the receive queue, so the message fails, and the stream with it.
func (c *Conn) ResumeStalled() bool {
	c.mu.Lock()
	if c.arbiter.rx != rxStalled {
		c.mu.Unlock()
		return false
	}
	c.resume()
	return true
}

func (s *stalled) stop() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// ReceiveWaits returns how often a message has waited for a receive.
func (c *Conn) ReceiveWaits() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stalled.count
}
