package rsocket

import "context"

// A goroutine that waits for the peer takes the completions of the CQ, and thereby receives for the QP, so that incoming data is
// handled by the goroutine that needs it. There is one taker at a time. The others wait for their conditions; when the taker leaves, it hands
// the task to one of them. If none waits, a goroutine is started that takes completions until one does. That happens if the stream has
// something to post that waits for the peer, and when the peer was told of more room, see consume. All functions here except settle
// are called with mu held.

// await returns when something may have changed. s is the side of the calling goroutine.
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

// look takes the completions that are in the CQ, unless another goroutine takes them.
func (c *Conn) look() {
	for n := len(c.wcs); n == len(c.wcs) && !c.taking && c.state == running; {
		n = c.mem.cq.Poll(c.wcs[:])
		c.took(n)
	}
}

// passOn wakes or starts a goroutine that takes completions, unless one takes them already or nothing waits for them.
func (c *Conn) passOn() {
	if c.taking || c.state != running {
		return
	}
	if s := c.waiting(); s != nil {
		s.cond.Signal()
	} else if c.stream.Owes() {
		c.takeBeside()
	}
}

// waiting returns a side whose goroutine waits for its condition, or nil.
func (c *Conn) waiting() *side {
	for _, s := range []*side{&c.rd, &c.wr, &c.end} {
		if s.waits {
			return s
		}
	}
	return nil
}

// takeBeside starts a goroutine that takes completions until a waiting goroutine does.
func (c *Conn) takeBeside() {
	if !c.taking && c.state == running {
		c.taking = true
		go c.settler()
	}
}

// settle takes completions until another goroutine waits, and hands the task to it.
func (c *Conn) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.take(); c.state == running && c.waiting() == nil; c.take() {
		c.taking = true
	}
	c.passOn()
}

// rouse makes the goroutine inside a side, and the goroutines that wait for it to leave, check their conditions again.
func (c *Conn) rouse(s *side) {
	s.cond.Broadcast()
	s.turn.Broadcast()
	if c.taking {
		c.mem.cq.Signal()
	}
}

// wake makes all waiting goroutines check their conditions again.
func (c *Conn) wake() {
	for _, s := range []*side{&c.rd, &c.wr, &c.end} {
		c.rouse(s)
	}
}
