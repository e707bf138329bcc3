package authn

import (
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/closed"
	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// Configure puts the first message of the session into the configuration of a stream: the message
// that proves an initiator, or the message that a responder must receive. From now on the session
// belongs to the connection.
func (i *Identity[P]) Configure(c *rdmap.Config, terms *mpa.Terms) (err error) {
	s := i.own()
	switch {
	case s == nil, s.FirstLen() == 0:
		return nil
	case terms.Initiator:
		i.proves = true
		c.RTR = 0
		c.First, err = s.First()
		return err
	}
	i.admitted = make(chan struct{})
	switch n := s.FirstLen(); {
	case !isFirstLen(n):
		return errFirstLen
	case terms.RTR != 0:
		return fmt.Errorf("%w: the initiator has asked for an RTR, whose place the first message of its Authenticator takes", i.verbs.Failed)
	default:
		c.Gate = &rdmap.Gate{Len: n, Verify: s.VerifyFirst, Opened: func() { close(i.admitted) }}
		return nil
	}
}

// Proves reports whether our first message proves our identity.
func (i *Identity[P]) Proves() bool { return i != nil && i.proves }

// Refused reports whether a Terminate of the peer with this code refuses our first message: nothing
// else has come from the peer before it.
func (i *Identity[P]) Refused(c transport.Code, s rdmap.Stats) bool {
	return i.Proves() && c == transport.RDMAPStreamCatastrophic && qpconn.NothingButTerminate(s)
}

// Gated reports whether the first message of the initiator must prove its identity.
func (i *Identity[P]) Gated() bool { return i != nil && i.admitted != nil }

// Admitted reports whether the peer has proved its identity, or need not.
func (i *Identity[P]) Admitted() bool { return !i.Gated() || closed.Is(i.admitted) }

// A Connection is what Admit must know about a connection.
type Connection struct {
	Done  <-chan struct{} // closed when the connection has ended
	Abort func(cause error)
	Err   func() error // why the connection has ended; nil: the peer has ended it
}

// Admit waits, within ctx, until the initiator has proved its identity.
func (i *Identity[P]) Admit(ctx context.Context, c Connection) error {
	if !i.Gated() {
		return nil
	}
	select {
	case <-i.admitted:
	case <-c.Done:
	case <-ctx.Done():
		if !i.Admitted() {
			c.Abort(fmt.Errorf("%w: the first message of the initiator has not come in time: %w", i.verbs.Failed, context.Cause(ctx)))
			<-c.Done
		}
	}
	err := c.Err()
	if i.Admitted() && !errors.Is(err, i.verbs.Failed) { // also if the peer has ended the connection since, unless we have
		return nil
	}
	switch {
	case err == nil: // the peer has ended its half
		return fmt.Errorf("%w: the initiator has ended the connection before its first message", i.verbs.Failed)
	case errors.Is(err, i.verbs.Failed):
		return err
	}
	return fmt.Errorf("%w: the connection ended before the first message of the initiator: %w", i.verbs.Failed, errtext.Clause(err))
}
