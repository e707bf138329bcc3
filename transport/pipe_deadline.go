package transport

import (
	"net"
	"time"
)

// deadline bounds one kind of call. The pipe's mutex guards it.
type deadline struct {
	expired bool
	set     int // how often it was set, so that the timer of an earlier deadline is ignored
	timer   *time.Timer
}

func (d *deadline) stop() {
	d.set++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// start sets the deadline; the zero time removes it. Only the timer decides about the
// expiry, never a comparison of clocks, which could disagree with the timer.
func (d *deadline) start(t time.Time, p *pipe) {
	d.stop()
	d.expired = false
	if t.IsZero() {
		return
	}
	left := time.Until(t)
	if left <= 0 {
		d.expired = true
		p.changed.Broadcast()
		return
	}
	set := d.set
	d.timer = time.AfterFunc(left, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if d.set == set {
			d.expired = true
			p.changed.Broadcast()
		}
	})
}

func (c *pipeConn) SetDeadline(t time.Time) error      { return c.setDeadlines(t, &c.rd, &c.wd) }
func (c *pipeConn) SetReadDeadline(t time.Time) error  { return c.setDeadlines(t, &c.rd) }
func (c *pipeConn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, &c.wd) }

func (c *pipeConn) setDeadlines(t time.Time, ds ...*deadline) error {
	c.pipe.mu.Lock()
	defer c.pipe.mu.Unlock()
	if c.closed {
		return c.opError("set", net.ErrClosed)
	}
	for _, d := range ds {
		d.start(t, c.pipe)
	}
	return nil
}
