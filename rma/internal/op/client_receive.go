package op

import "time"

// Receive handles a message whose Role is ClientRole.
func (c *Client) Receive(dst []Action, now time.Time, m *Message) []Action {
	c.clock.at(now)
	if c.phase >= phaseEnded {
		return dst
	}
	i, ok := c.find(m.Op)
	if !ok {
		return c.unknown(dst, m)
	}
	o := &c.ops[i]
	switch {
	case o.state == opWindow, !m.answers(o.cmd.Kind):
		return c.end(dst, m, Unexpected)
	case !o.agrees(m), m.Type != TypeStatus && m.Length != o.cmd.Length:
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

// unknown handles a message for an operation without a record, such as a write that has timed out after
// its PULL.
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
	o := &c.ops[i]
	switch o.state {
	case opSent:
		if o.cmd.Direct {
			return c.retire(c.complete(c.release(dst, i, RefundOK), o.id, result{}), i)
		}
		o.state = opOpening
		return append(dst, c.action(OpenData, i))
	case opWithdrawn:
		o.state = opRevoked
		return c.complete(c.release(dst, i, RefundOK), o.id, result{})
	default:
		return c.tooLate(dst, m, i)
	}
}

// answered: the keys of a region, or its next epoch.
func (c *Client) answered(dst []Action, m *Message, i int32) []Action {
	o := &c.ops[i]
	if o.state != opSent {
		return c.tooLate(dst, m, i)
	}
	return c.retire(c.complete(dst, o.id, result{}), i)
}

// pull: the server requests the octets of a write. The client gives up later than the server, by the
// guard: the server's timer began before the message came.
func (c *Client) pull(dst []Action, m *Message, i int32) []Action {
	o := &c.ops[i]
	if m.Source != o.cmd.Source {
		return c.end(dst, m, Contradiction)
	}
	switch o.state {
	case opSent, opRecalled:
	case opLate:
		c.stats.LatePulls++
		a := c.action(SendStatus, i)
		a.Outcome, a.Reason, a.Invalidate = NACK, TooLate, !m.Source
		return c.tooLate(append(dst, a), m, i)
	default:
		return c.end(dst, m, Unexpected)
	}
	o.due = c.clock.timer(c.doneTimeout(m.Timeout))
	o.salt = m.Salt
	if m.Source {
		o.state = opPulled
		return dst
	}
	o.state = opSealing
	return append(dst, c.action(Seal, i))
}

// doneTimeout is Ts + G.
func (c *Client) doneTimeout(pullTimeout time.Duration) time.Duration {
	return pullTimeout + max(c.cfg.Guard, MinGuard(pullTimeout))
}

// writeDone: the octets of a write are in the region.
func (c *Client) writeDone(dst []Action, m *Message, i int32) []Action {
	o := &c.ops[i]
	switch {
	case m.Salt != o.salt:
		return c.end(dst, m, Contradiction)
	case o.state == opPulled:
		return c.retire(c.complete(dst, o.id, result{}), i)
	case o.state == opWithdrawn:
		o.state = opRevoked
		return c.complete(dst, o.id, result{})
	}
	return c.end(dst, m, Unexpected)
}

// status: the operation has failed.
func (c *Client) status(dst []Action, m *Message, i int32) []Action {
	o := &c.ops[i]
	r := result{outcome: told(m.Code), reason: m.Reason, retryAfter: m.RetryAfter}
	switch o.state {
	case opSent, opPulled:
		return c.retire(c.complete(c.release(dst, i, refundOf(r.outcome)), o.id, r), i)
	case opSealing:
		o.state, o.result = opSettled, r
		return dst
	case opRecalled, opWithdrawn:
		o.state = opRevoked
		return c.complete(c.release(dst, i, refundOf(r.outcome)), o.id, r)
	default:
		return c.tooLate(dst, m, i)
	}
}

// tooLate handles an answer that comes after the outcome was reported. It returns the credit.
func (c *Client) tooLate(dst []Action, m *Message, i int32) []Action {
	o := &c.ops[i]
	switch o.state {
	case opFenced:
		dst = c.retire(c.release(dst, i, RefundTimeout), i)
	case opRevoking:
		o.state = opRevoked
	case opLate:
		dst = c.retire(dst, i)
	case opSettled:
	default:
		return c.end(dst, m, Unexpected)
	}
	c.stats.Late++
	return dst
}
