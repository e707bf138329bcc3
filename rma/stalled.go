package rma

import (
	"slices"
	"time"

	"github.com/goiwarp/iwarp/rma/internal/op"
)

// A sink must not become invalid before the message that names it has left: the work request in front of that message
// would fail, and the connection would end, though only the path was slow. Until then the peer does not know the sink. The
// sink must also stay valid for a while afterwards, because the peer answers the message: Linger counts from a check that
// finds the message sent. The caller's buffer does not wait for that: the caller is told in bounded time that it is free.

// leaseOf returns the lease of an operation; nil: it has no lease of this side.
func (c *conn) leaseOf(role op.Role, a *op.Action) *lease {
	switch {
	case role == op.ClientRole:
		return c.flights[a.Record].lease(a.Op)
	case a.Source:
		return nil
	default:
		return c.requests[a.Record].sink
	}
}

// lent notes that the message which names a lease is the last one of the outbox. mu is held.
func (c *conn) lent(l *lease) { l.unsent = c.outbox.posted + uint64(len(c.outbox.wrs)) }

// looked checks whether the message that names a lease was sent. It reports whether an earlier check found that. mu is held.
func (c *conn) looked(l *lease) bool {
	if l.unsent == 0 {
		return true
	}
	if l.unsent+uint64(c.qp.Stats().SendQueued) <= c.outbox.posted { // they are sent in order
		l.unsent = 0
	}
	return false
}

// hold keeps the grant of an operation that has timed out. Linger begins. mu is held.
func (c *conn) hold(role op.Role, a *op.Action, grant uint64) {
	c.solicitor.hold(c.now, grant)
	if l := c.leaseOf(role, a); l != nil {
		c.looked(l)
	}
}

// stall keeps an STag valid for now. mu is held.
func (c *conn) stall(r revoking) {
	r.until = c.now.Add(maxOpTimeout)
	if len(c.stalled) == 0 {
		c.looks = c.now.Add(c.lookAfter())
	}
	c.stalled = append(c.stalled, r)
}

// lookAfter returns the time between two checks of the stalled STags.
func (c *conn) lookAfter() time.Duration { return max(c.mine.Linger, c.theirs.Linger, postWithin) }

// lookAtStalled leaves the stalled STags that may become invalid now to run. mu is held.
func (c *conn) lookAtStalled() {
	if len(c.stalled) == 0 || c.now.Before(c.looks) {
		return
	}
	c.looks = c.now.Add(c.lookAfter())
	c.stalled = slices.DeleteFunc(c.stalled, func(r revoking) bool {
		switch {
		case c.looked(r.lease):
			c.withdraw(r)
			return true
		case r.lease.unsent > 0 && !c.now.Before(r.until) && c.cq.Stats().Waiting == 0:
			c.end(errNotTaken)
		}
		return false
	})
}
