package qpconn

import "time"

// NoticeAfter is how long a message waits for a receive before NoticeNoReceive.
const NoticeAfter = time.Second

// stalled is a message that waits for a receive. The mutex of the Conn guards it.
type stalled struct {
	timer *time.Timer // not nil: one waits
	count uint64      // how often one has
}

// stall gives the right to receive up, because a message has found no receive. It reports
// whether the caller has it all the same.
func (c *Conn) stall() (holds bool) {
	c.mu.Lock()
	if c.act(c.arbiter.stall())&doRead != 0 {
		return true
	}
	if c.owner.HasReceive() {
		c.Resume()
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.arbiter.rx == rxStalled && c.stalled.timer == nil {
		c.stalled.count++
		c.stalled.timer = c.patience()
	}
	return false
}

// patience starts the timer of a message that waits: a notice after a while, and an error of
// the message when Config.ReceiveWait is over. c.mu is held.
func (c *Conn) patience() *time.Timer {
	var t *time.Timer
	first := min(c.receiveWait, NoticeAfter)
	rest := c.receiveWait - first // guarded by c.mu
	t = time.AfterFunc(first, func() {
		c.mu.Lock()
		waits := c.stalled.timer == t && c.ending.stage < Terminating // else a receive was posted, or the connection is ending
		over := rest <= 0
		if waits && !over {
			t.Reset(rest)
			rest = 0
		}
		c.mu.Unlock()
		switch {
		case !waits:
		case over:
			c.owner.Notice(NoticeReceiveOverdue)
			c.Resume()
		default:
			c.owner.Notice(NoticeNoReceive)
		}
	})
	return t
}

// Resume tells that a receive was posted, or that a message is to wait for none any more.
// That is done first, and told second.
func (c *Conn) Resume() {
	c.mu.Lock()
	d := c.arbiter.resume()
	if d != 0 {
		c.stalled.stop()
	}
	c.act(d)
}

func (s *stalled) stop() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// ReceiveWaits is how often a message has waited for a receive.
func (c *Conn) ReceiveWaits() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stalled.count
}
