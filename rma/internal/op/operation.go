package op

import "time"

// An opState is the state of an operation with a credit: see Client.
type opState uint8

const (
	opUnused opState = iota
	opWindow
	opSent
	opOpening
	opSealing
	opSettled // the outcome is known, and the caller still reads the buffer
	opPulled
	opLost
	opRecalled  // its source is being revoked, and the PULL may have come
	opWithdrawn // the STag of the caller's buffer is being revoked
	opFenced
	opRevoking
	opRevoked // it ends when Revoked comes
	opLate
)

// A tag is the state of the STag of a sink or source.
type tag uint8

const (
	tagNone tag = iota
	tagEnabled
	tagRevoked
)

// An operation is the record of an operation with a credit.
type operation struct {
	state  opState
	tag    tag
	id     ID
	cmd    Command
	due    time.Duration // of its timer, in the states that have one
	salt   [16]byte      // of the PULL
	result result        // in opSettled
}

// A result is what Complete reports.
type result struct {
	outcome    Outcome
	reason     Reason
	retryAfter time.Duration
	gone       bool
}

// timed reports whether the timer of an operation runs.
func (o *operation) timed() bool {
	switch o.state {
	case opWindow, opSent, opSealing, opPulled, opLost, opFenced:
		return true
	default:
		return false
	}
}

// agrees reports whether the message invalidates the STag that the operation has named. An STag that
// was revoked may be invalid already.
func (o *operation) agrees(m *Message) bool {
	switch o.tag {
	case tagEnabled:
		if m.Type == TypePull {
			return m.Invalidated == NoRole
		}
		return m.Invalidated == ClientRole
	case tagRevoked:
		return m.Invalidated == NoRole || m.Invalidated == ClientRole
	default:
		return m.Invalidated == NoRole
	}
}

// action returns an Action for an operation.
func (c *Client) action(do Do, i int32) Action {
	o := &c.ops[i]
	return Action{Do: do, Op: o.id, Record: int(i), Kind: o.cmd.Kind, Class: o.cmd.Class, Source: o.cmd.Source}
}

// find returns the record of an operation.
func (c *Client) find(id ID) (int32, bool) {
	n := int(id.Slot())
	if n >= len(c.slots) || id == 0 {
		return none, false
	}
	if s := &c.slots[n]; s.id == id {
		return s.op, s.op != none
	}
	for i := range c.ops { // another operation has its slot now
		if o := &c.ops[i]; o.state != opUnused && o.id == id {
			return int32(i), true
		}
	}
	return none, false
}

// complete reports the outcome and frees the slot.
func (c *Client) complete(dst []Action, id ID, r result) []Action {
	n := id.Slot()
	s := &c.slots[n]
	c.stats.Outcomes[r.outcome]++
	dst = append(dst, Action{
		Do: Complete, Op: id, Record: int(s.op), Kind: s.cmd.Kind, Class: s.cmd.Class, Source: s.cmd.Source,
		Outcome: r.outcome, Reason: r.reason, RetryAfter: r.retryAfter, Gone: r.gone,
	})
	*s = slot{}
	c.free = append(c.free, n)
	return dst
}

// release returns the grant of a read. Other operations have none.
func (c *Client) release(dst []Action, i int32, r Refund) []Action {
	if c.ops[i].cmd.Kind != Read {
		return dst
	}
	a := c.action(Release, i)
	a.Refund = r
	return append(dst, a)
}

// revoke starts to revoke the sink or the source.
func (c *Client) revoke(dst []Action, i int32) []Action {
	c.ops[i].tag = tagRevoked
	return append(dst, c.action(Revoke, i))
}

// retire ends a record, and gives its credit to the first operation that waits.
func (c *Client) retire(dst []Action, i int32) []Action {
	dst = append(dst, c.action(Free, i))
	c.ops[i] = operation{}
	c.unused = append(c.unused, i)
	return c.start(dst)
}
