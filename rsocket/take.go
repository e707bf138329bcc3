package rsocket

import "context"

// A goroutine that waits for the peer takes the completions of the CQ, and with them receives for the QP, so that what comes is
// handled by the goroutine that it is for. There is one taker at a time. The others wait for their conditions; when the taker leaves, it hands
// the task to one of them. When all have left, completions are taken as long as the stream has something to post that waits for
// the peer, by a goroutine that is started for it. All functions here have mu held.

// await returns when something may have changed: s is of the goroutine that calls it.
func (c *Conn) await(s *side) {
	if c.taking || c.state != running {
		s.waits = true
		s.cond.Wait()
		s.waits = false
		return
	}
	c.taking = true
	c.take()
}

// take waits for completions, and does what follows from them. The caller has set taking.
func (c *Conn) take() {
	c.mu.Unlock()
	n, err := c.mem.cq.Wait(context.Background(), c.wcs[:]) // a context that can end would cost an allocation
	c.mu.Lock()
	c.taking = false
	c.left.Signal()
	if err != nil {
		c.stops()
	}
	c.took(n)
}

// took handles n completions.
func (c *Conn) took(n int) {
	c.completions(n)
	c.postReceives()
	c.pump()
	if c.state != running {
		c.wake()
	}
}

// look takes the completions that are there, unless another goroutine takes them.
func (c *Conn) look() {
	for n := len(c.wcs); n == len(c.wcs) && !c.taking && c.state == running; {
		n = c.mem.cq.Poll(c.wcs[:])
		c.took(n)
	}
}

// passOn has no effect while completions are taken, or if there is no need for that. Otherwise it wakes or starts a goroutine that takes them.
func (c *Conn) passOn() {
	if c.taking || c.state != running {
		return
	}
	for _, s := range []*side{&c.rd, &c.wr, &c.end} {
		if s.waits {
			s.cond.Signal()
			return
		}
	}
	if c.stream.Owes() {
		c.takeBeside()
	}
}

// takeBeside makes another goroutine take completions, until one that waits does.
func (c *Conn) takeBeside() {
	if !c.taking && c.state == running {
		c.taking = true
		go c.settler()
	}
}

// settle takes completions once, and again if there is a need for it and no other goroutine waits.
func (c *Conn) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.take()
	c.passOn()
}

// rouse makes the goroutine of a side look again.
func (c *Conn) rouse(s *side) {
	s.cond.Broadcast()
	if c.taking {
		c.mem.cq.Signal()
	}
}

// wake makes all that wait look again.
func (c *Conn) wake() {
	for _, s := range []*side{&c.rd, &c.wr, &c.end} {
		c.rouse(s)
	}
}
