package op

import "time"

// A flightState is where an operation with a credit stands: see Client.
type flightState uint8

const (
	flightUnused flightState = iota
	flightWindow
	flightSent
	flightOpening
	flightSealing
	flightSettled // the outcome is known, and the caller still reads the buffer
	flightPulled
	flightLost
	flightRecalled  // its source is being revoked, and the PULL may have come
	flightWithdrawn // what it has lent of the caller's buffer is being revoked
	flightFenced
	flightRevoking
	flightRevoked // it is over when Revoked comes
	flightLate
)

// A tag is the state of the STag of a sink or source.
type tag uint8

const (
	tagNone tag = iota
	tagEnabled
	tagRevoked
)

// A flight is the record of an operation with a credit.
type flight struct {
	state  flightState
	tag    tag
	id     ID
	cmd    Command
	due    time.Duration // of its timer, in the states that have one
	salt   [16]byte      // of the PULL
	result result        // in flightSettled
}

// A result is what Complete tells.
type result struct {
	outcome    Outcome
	reason     Reason
	retryAfter time.Duration
	gone       bool
}

// timed reports whether the timer of a flight runs.
func (f *flight) timed() bool {
	switch f.state {
	case flightWindow, flightSent, flightSealing, flightPulled, flightLost, flightFenced:
		return true
	default:
		return false
	}
}

// agrees reports whether the message invalidates what the operation has named. What was revoked
// may have been invalidated before.
func (f *flight) agrees(m *Message) bool {
	switch f.tag {
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

// action is one for a flight.
func (c *Client) action(do Do, i int32) Action {
	f := &c.flights[i]
	return Action{Do: do, Op: f.id, Record: int(i), Kind: f.cmd.Kind, Class: f.cmd.Class, Source: f.cmd.Source}
}

// find returns the flight of an operation.
func (c *Client) find(id ID) (int32, bool) {
	n := int(id.Slot())
	if n >= len(c.slots) || id == 0 {
		return none, false
	}
	if s := &c.slots[n]; s.id == id {
		return s.flight, s.flight != none
	}
	for i := range c.flights { // its slot is used again
		if f := &c.flights[i]; f.state != flightUnused && f.id == id {
			return int32(i), true
		}
	}
	return none, false
}

// complete tells the outcome and frees the slot.
func (c *Client) complete(dst []Action, id ID, r result) []Action {
	n := id.Slot()
	s := &c.slots[n]
	switch r.outcome {
	case Timeout:
		c.stats.Timeouts++
	case DispatchTimeout:
		c.stats.DispatchTimeouts++
	}
	dst = append(dst, Action{
		Do: Complete, Op: id, Record: int(s.flight), Kind: s.cmd.Kind, Class: s.cmd.Class, Source: s.cmd.Source,
		Outcome: r.outcome, Reason: r.reason, RetryAfter: r.retryAfter, Gone: r.gone,
	})
	*s = slot{}
	c.free = append(c.free, n)
	return dst
}

// release gives the grant of a read back. Other operations have none.
func (c *Client) release(dst []Action, i int32, r Refund) []Action {
	if c.flights[i].cmd.Kind != Read {
		return dst
	}
	a := c.action(Release, i)
	a.Refund = r
	return append(dst, a)
}

// revoke starts to revoke the sink or the source.
func (c *Client) revoke(dst []Action, i int32) []Action {
	c.flights[i].tag = tagRevoked
	return append(dst, c.action(Revoke, i))
}

// retire ends a record, and gives its credit to the operation that waits first.
func (c *Client) retire(dst []Action, i int32) []Action {
	dst = append(dst, c.action(Free, i))
	c.flights[i] = flight{}
	c.unused = append(c.unused, i)
	return c.start(dst)
}
