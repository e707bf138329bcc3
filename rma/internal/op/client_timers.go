package op

import "time"

// Tick lets the timers run out whose time is over. Call it at Deadline, after the messages that
// have come until then were given to Receive.
func (c *Client) Tick(dst []Action, now time.Time) []Action {
	t := c.clock.at(now)
	if t < c.clock.next {
		return dst
	}
	// What starts a timer meanwhile lowers it again.
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
	for i := range c.flights {
		f := &c.flights[i]
		if f.timed() && f.due <= t {
			dst = c.timeout(dst, int32(i))
		}
		if f.timed() {
			c.clock.next = min(c.clock.next, f.due)
		}
	}
	return dst
}

// timeout handles the timer of a flight.
func (c *Client) timeout(dst []Action, i int32) []Action {
	f := &c.flights[i]
	switch f.state {
	case flightWindow:
		dst = append(dst, c.action(Cancel, i))
		return c.retire(c.complete(dst, f.id, result{outcome: DispatchTimeout}), i)
	case flightSent:
		return c.unanswered(dst, i)
	case flightSealing:
		f.state, f.result = flightSettled, result{outcome: Timeout}
	case flightPulled:
		if f.tag == tagEnabled {
			f.state = flightWithdrawn
			return c.revoke(dst, i)
		}
		return c.retire(c.complete(dst, f.id, result{outcome: Timeout}), i)
	case flightLost:
		return c.retire(c.complete(dst, f.id, result{outcome: Timeout, gone: true}), i)
	case flightFenced:
		f.state = flightRevoking
		return c.revoke(dst, i)
	}
	return dst
}

// unanswered handles a request that was not answered in time.
func (c *Client) unanswered(dst []Action, i int32) []Action {
	f := &c.flights[i]
	switch {
	case f.cmd.Source:
		f.state = flightRecalled
		return c.revoke(dst, i)
	case f.cmd.Kind != Read:
		f.state = flightLate
		return c.complete(dst, f.id, result{outcome: Timeout})
	}
	dst = append(dst, c.action(Hold, i))
	if f.cmd.Direct {
		f.state = flightWithdrawn
		return c.revoke(dst, i)
	}
	dst = c.complete(dst, f.id, result{outcome: Timeout})
	if c.cfg.Linger == 0 {
		f.state = flightRevoking
		return c.revoke(dst, i)
	}
	f.state, f.due = flightFenced, c.clock.timer(c.cfg.Linger)
	return dst
}

// Close ends the operations that have not sent anything, with Closed. Those that have go on.
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
	for i := range c.flights {
		if f := &c.flights[i]; f.state == flightWindow {
			dst = append(dst, c.action(Cancel, int32(i)))
			dst = c.retire(c.complete(dst, f.id, result{outcome: Closed}), int32(i))
		}
	}
	return dst
}

// Lost says that the connection is gone: nothing is placed or read through an STag any more, and
// all messages that came before were given to Receive. Revoked is still called for each Revoke.
func (c *Client) Lost(dst []Action, now time.Time) []Action {
	c.clock.at(now)
	unheard := c.phase == phaseEnded
	if c.phase == phaseLost {
		return dst
	}
	c.phase = phaseLost
	dst = c.drop(dst)
	for i := range c.flights {
		dst = c.lose(dst, int32(i), unheard)
	}
	return dst
}

// outlast waits as long as a server may take that has pulled a source until now.
func (c *Client) outlast(dst []Action, i int32) []Action {
	f := &c.flights[i]
	f.state, f.due = flightLost, c.clock.timer(c.patience(c.cfg.PullTimeout))
	return dst
}

// lose handles the loss of the connection for one flight. If messages went unheard a PULL may be
// among them.
func (c *Client) lose(dst []Action, i int32, unheard bool) []Action {
	f := &c.flights[i]
	gone := result{outcome: Timeout, gone: true}
	switch f.state {
	case flightSent, flightRecalled:
		switch {
		case unheard && f.cmd.Source:
			return c.outlast(dst, i)
		case f.state == flightRecalled:
			f.state = flightRevoked
			return c.complete(dst, f.id, gone)
		}
		return c.retire(c.complete(c.release(dst, i, RefundFailed), f.id, result{outcome: Closed}), i)
	case flightSealing:
		f.state, f.result = flightSettled, result{outcome: Closed}
	case flightPulled:
		f.state = flightLost
	case flightWithdrawn:
		f.state = flightRevoked
		return c.complete(c.release(dst, i, RefundTimeout), f.id, gone)
	case flightFenced:
		return c.retire(c.release(dst, i, RefundTimeout), i)
	case flightRevoking:
		f.state = flightRevoked
		return c.release(dst, i, RefundTimeout)
	case flightLate:
		return c.retire(dst, i)
	}
	return dst
}
