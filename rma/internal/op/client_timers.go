package op

import "time"

// Tick lets the timers run out that are due. Call it at Deadline, after the messages that have come
// until then were passed to Receive.
func (c *Client) Tick(dst []Action, now time.Time) []Action {
	t := c.clock.at(now)
	if t < c.clock.next {
		return dst
	}
	// Timers that are started below lower it again.
	c.clock.next = never
	for n := c.waiting.head; n != none; {
		s := &c.slots[n]
		next := s.next
		if s.due <= t {
			c.waiting.remove(c.slots, n)
			dst = c.complete(dst, s.id, result{outcome: DispatchTimeout})
		} else {
			c.clock.next = min(c.clock.next, s.due)
		}
		n = next
	}
	for i := range c.ops {
		o := &c.ops[i]
		if o.timed() && o.due <= t {
			dst = c.timeout(dst, int32(i))
		}
		if o.timed() {
			c.clock.next = min(c.clock.next, o.due)
		}
	}
	return dst
}

// timeout handles the timer of an operation.
func (c *Client) timeout(dst []Action, i int32) []Action {
	o := &c.ops[i]
	switch o.state {
	case opWindow:
		dst = append(dst, c.action(Cancel, i))
		return c.retire(c.complete(dst, o.id, result{outcome: DispatchTimeout}), i)
	case opSent:
		return c.unanswered(dst, i)
	case opSealing:
		o.state, o.result = opSettled, result{outcome: Timeout}
		return dst
	case opPulled:
		if o.tag == tagEnabled {
			o.state = opWithdrawn
			return c.revoke(dst, i)
		}
		return c.retire(c.complete(dst, o.id, result{outcome: Timeout}), i)
	case opLost:
		return c.retire(c.complete(dst, o.id, result{outcome: Timeout, gone: true}), i)
	case opFenced:
		return c.giveUp(dst, i)
	default:
		return dst
	}
}

// unanswered handles a request that was not answered in time.
func (c *Client) unanswered(dst []Action, i int32) []Action {
	o := &c.ops[i]
	switch {
	case o.cmd.Source:
		o.state = opRecalled
		return c.revoke(dst, i)
	case o.cmd.Kind != Read:
		o.state = opLate
		return c.complete(dst, o.id, result{outcome: Timeout})
	}
	dst = append(dst, c.action(Hold, i))
	if o.cmd.Direct {
		o.state = opWithdrawn
		return c.revoke(dst, i)
	}
	dst = c.complete(dst, o.id, result{outcome: Timeout})
	if c.cfg.Linger == 0 {
		return c.giveUp(dst, i)
	}
	o.state, o.due = opFenced, c.clock.timer(c.cfg.Linger)
	return dst
}

// giveUp revokes the sink of a read, and releases the grant. The octets may still come until the sink is invalid, but
// that may take as long as the request is in flight, so the grant does not wait for it.
func (c *Client) giveUp(dst []Action, i int32) []Action {
	c.ops[i].state = opRevoking
	return c.release(c.revoke(dst, i), i, RefundTimeout)
}

// Close ends the operations that have not sent anything, with Closed. The others continue.
func (c *Client) Close(dst []Action, now time.Time) []Action {
	c.clock.at(now)
	if c.phase == phaseOpen {
		c.phase = phaseClosing
	}
	return c.drop(dst)
}

// drop ends the operations that have not sent anything.
func (c *Client) drop(dst []Action) []Action {
	for c.waiting.head != none {
		n := c.waiting.head
		c.waiting.remove(c.slots, n)
		dst = c.complete(dst, c.slots[n].id, result{outcome: Closed})
	}
	for i := range c.ops {
		if o := &c.ops[i]; o.state == opWindow {
			dst = append(dst, c.action(Cancel, int32(i)))
			dst = c.retire(c.complete(dst, o.id, result{outcome: Closed}), int32(i))
		}
	}
	return dst
}

// Ended tells the Client that the caller ends the connection for a reason of its own, or of the Server of this side:
// from now on no message is passed to Receive.
func (c *Client) Ended() { c.phase = max(c.phase, phaseEnded) }

// Lost tells the Client that the connection is gone: nothing is placed or read through an STag any more, and all
// messages that came before were passed to Receive, except those after Ended. Revoked is still called for each
// Revoke.
func (c *Client) Lost(dst []Action, now time.Time) []Action {
	c.clock.at(now)
	unheard := c.phase == phaseEnded
	if c.phase == phaseLost {
		return dst
	}
	c.phase = phaseLost
	dst = c.drop(dst)
	for i := range c.ops {
		dst = c.loseOne(dst, int32(i), unheard)
	}
	return dst
}

// waitForServer waits as long as a server may take that has pulled a source by now.
func (c *Client) waitForServer(dst []Action, i int32) []Action {
	o := &c.ops[i]
	o.state, o.due = opLost, c.clock.timer(c.doneTimeout(c.cfg.PullTimeout))
	return dst
}

// loseOne handles the loss of the connection for one operation. If messages were not received, a PULL may
// be among them.
func (c *Client) loseOne(dst []Action, i int32, unheard bool) []Action {
	o := &c.ops[i]
	gone := result{outcome: Timeout, gone: true}
	switch o.state {
	case opSent, opRecalled:
		switch {
		case unheard && o.cmd.Source:
			return c.waitForServer(dst, i)
		case o.state == opRecalled:
			o.state = opRevoked
			return c.complete(dst, o.id, gone)
		case o.cmd.Kind == Rekey: // the server may have done it
			return c.retire(c.complete(dst, o.id, gone), i)
		}
		return c.retire(c.complete(c.release(dst, i, RefundFailed), o.id, result{outcome: Closed}), i)
	case opSealing:
		o.state, o.result = opSettled, result{outcome: Closed}
		return dst
	case opPulled:
		o.state = opLost
		return dst
	case opWithdrawn:
		o.state = opRevoked
		return c.complete(c.release(dst, i, RefundTimeout), o.id, gone)
	case opFenced:
		return c.retire(c.release(dst, i, RefundTimeout), i)
	case opRevoking:
		o.state = opRevoked
		return dst
	case opLate:
		return c.retire(dst, i)
	default:
		return dst
	}
}
