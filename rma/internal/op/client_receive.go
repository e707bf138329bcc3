package op

import "time"

// Receive takes a message whose Role is ClientRole.
func (c *Client) Receive(dst []Action, now time.Time, m *Message) []Action {
	c.clock.at(now)
	if c.phase >= phaseEnded {
		return dst
	}
	i, ok := c.find(m.Op)
	if !ok {
		return c.unknown(dst, m)
	}
	f := &c.flights[i]
	switch {
	case f.state == flightWindow, !m.answers(f.cmd.Kind):
		return c.end(dst, m, Unexpected)
	case !f.agrees(m), m.Type != TypeStatus && m.Length != f.cmd.Length:
		return c.end(dst, m, Contradiction)
	}
	switch m.Type {
	case TypeReadDone:
		return c.readDone(dst, m, i)
	case TypePull:
		return c.pull(dst, m, i)
	case TypeWriteDone:
		return c.writeDone(dst, m, i)
	case TypeStatus:
		return c.status(dst, m, i)
	default:
		return c.answered(dst, m, i)
	}
}

// unknown handles a message for no operation that has a record. A write that has timed out after its
// PULL has none.
func (c *Client) unknown(dst []Action, m *Message) []Action {
	was := int(m.Op.Slot()) < len(c.slots) && m.Op.Sequence() != 0 && m.Op.Sequence() <= c.last && c.slots[m.Op.Slot()].id != m.Op
	if was && m.Invalidated != OtherRole && (m.Type == TypeWriteDone || m.Type == TypeStatus) {
		c.stats.Late++
		return dst
	}
	return c.end(dst, m, Unexpected)
}

// end ends the connection.
func (c *Client) end(dst []Action, m *Message, why Why) []Action {
	c.phase = phaseEnded
	return append(dst, Action{Do: End, Op: m.Op, Record: NoRecord, Why: why})
}

// readDone: the blob of a read is in its sink, which the message has invalidated.
func (c *Client) readDone(dst []Action, m *Message, i int32) []Action {
	f := &c.flights[i]
	switch f.state {
	case flightSent:
		if f.cmd.Direct {
			return c.retire(c.complete(c.release(dst, i, RefundOK), f.id, result{}), i)
		}
		f.state = flightOpening
		return append(dst, c.action(OpenData, i))
	case flightWithdrawn:
		f.state = flightRevoked
		return c.complete(c.release(dst, i, RefundOK), f.id, result{})
	}
	return c.tooLate(dst, m, i)
}

// answered: the keys of a region, or its next epoch.
func (c *Client) answered(dst []Action, m *Message, i int32) []Action {
	f := &c.flights[i]
	if f.state != flightSent {
		return c.tooLate(dst, m, i)
	}
	return c.retire(c.complete(dst, f.id, result{}), i)
}

// pull: the server asks for the octets of a write. The client gives up a guard after the server,
// whose time began before the message came.
func (c *Client) pull(dst []Action, m *Message, i int32) []Action {
	f := &c.flights[i]
	if m.Source != f.cmd.Source {
		return c.end(dst, m, Contradiction)
	}
	switch f.state {
	case flightSent, flightRecalled:
	case flightLate:
		c.stats.LatePulls++
		a := c.action(SendStatus, i)
		a.Outcome, a.Reason, a.Invalidate = NACK, TooLate, !m.Source
		return c.tooLate(append(dst, a), m, i)
	default:
		return c.end(dst, m, Unexpected)
	}
	f.due = c.clock.timer(c.patience(m.Timeout))
	f.salt = m.Salt
	if m.Source {
		f.state = flightPulled
		return dst
	}
	f.state = flightSealing
	return append(dst, c.action(Seal, i))
}

// patience is Ts + G.
func (c *Client) patience(pullTimeout time.Duration) time.Duration {
	return pullTimeout + max(c.cfg.Guard, MinGuard(pullTimeout))
}

// writeDone: the octets of a write are in the region.
func (c *Client) writeDone(dst []Action, m *Message, i int32) []Action {
	f := &c.flights[i]
	switch {
	case m.Salt != f.salt:
		return c.end(dst, m, Contradiction)
	case f.state == flightPulled:
		return c.retire(c.complete(dst, f.id, result{}), i)
	case f.state == flightWithdrawn:
		f.state = flightRevoked
		return c.complete(dst, f.id, result{})
	}
	return c.end(dst, m, Unexpected)
}

// status: the operation has failed.
func (c *Client) status(dst []Action, m *Message, i int32) []Action {
	f := &c.flights[i]
	r := result{outcome: told(m.Code), reason: m.Reason, retryAfter: m.RetryAfter}
	switch f.state {
	case flightSent, flightPulled:
		return c.retire(c.complete(c.release(dst, i, refundOf(r.outcome)), f.id, r), i)
	case flightSealing:
		f.state, f.result = flightSettled, r
		return dst
	case flightRecalled, flightWithdrawn:
		f.state = flightRevoked
		return c.complete(c.release(dst, i, refundOf(r.outcome)), f.id, r)
	}
	return c.tooLate(dst, m, i)
}

// tooLate handles an answer that comes when the outcome was told. It returns the credit.
func (c *Client) tooLate(dst []Action, m *Message, i int32) []Action {
	f := &c.flights[i]
	switch f.state {
	case flightFenced:
		dst = c.retire(c.release(dst, i, RefundTimeout), i)
	case flightRevoking:
		f.state = flightRevoked
		dst = c.release(dst, i, RefundTimeout)
	case flightLate:
		dst = c.retire(dst, i)
	case flightSettled:
	default:
		return c.end(dst, m, Unexpected)
	}
	c.stats.Late++
	return dst
}
