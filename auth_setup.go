package iwarp

import (
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/setup"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

var (
	errRTRAndAuth = errors.New("iwarp: MPAOptions.RTR and StrictRTR cannot be used with an Authenticator whose first message takes the place of the RTR")
	errNoSession  = errors.New("iwarp: the Authenticator has returned no session")
	errFirstLen   = fmt.Errorf("iwarp: the first message of an AuthSession may have 0 to %d octets", rdmap.MaxFirst)
	errAskedRTR   = fmt.Errorf("%w: the initiator has asked for an RTR, whose place the first message of its Authenticator takes", ErrAuth)
	errEnded      = fmt.Errorf("%w: the initiator has ended the connection before its first message", ErrAuth)
	errNoProof    = fmt.Errorf("%w: the first message of the initiator has not come in time", ErrAuth)
)

// authenticates begins a session for the connection that l describes, if there is an
// Authenticator.
func (qp *QP) authenticates(ctx context.Context, l *setup.Local, info *AuthInfo) error {
	auth := qp.cfg.Auth
	if auth == nil {
		return nil
	}
	if qp.identity == nil {
		qp.identity = new(identity)
	}
	info.MaxPrivate = l.MaxPrivate(info.Network)
	l.Again = func(ctx context.Context, err error) (transport.Sealer, *mpa.Options) {
		o := qp.cfg.MPA.options()
		auth := retries(err)
		if auth == nil && setup.NoAnswer(err) && allowsRev1(qp.cfg.Auth) && !qp.cfg.MPA.NoFallback {
			auth, o.Revision = qp.cfg.Auth, mpa.Revision1
		}
		if auth == nil {
			return nil, nil
		}
		s, err := qp.session(ctx, auth, info, &o)
		if err != nil {
			return nil, nil
		}
		return s, &o
	}
	s, err := qp.session(ctx, auth, info, &l.MPA)
	if err != nil {
		return err
	}
	l.Seal = s
	return nil
}

// session begins a session, and has o fit it.
func (qp *QP) session(ctx context.Context, auth Authenticator, info *AuthInfo, o *mpa.Options) (AuthSession, error) {
	s, err := auth.Initiate(ctx, info)
	if err == nil && s == nil {
		err = errNoSession
	}
	if err != nil {
		return nil, err
	}
	qp.identity.begin(s)
	switch n := s.FirstLen(); {
	case !isFirstLen(n):
		return nil, errFirstLen
	case n > 0 && (o.RTR != 0 || o.StrictRTR):
		return nil, errRTRAndAuth
	case n > 0:
		o.ClientServer = true
	}
	return s, nil
}

func isFirstLen(n int) bool { return 0 <= n && n <= rdmap.MaxFirst }

// retries is the Authenticator with which the peer wants to be asked once more, nil if there is
// none.
func retries(err error) Authenticator {
	var again interface {
		error
		Retry() Authenticator
	}
	if errors.As(err, &again) {
		return again.Retry()
	}
	return nil
}

// allowsRev1 reports whether an Authenticator takes revision 1, whose frames say less of what
// there is to be authenticated.
func allowsRev1(auth Authenticator) bool {
	a, ok := auth.(interface{ AllowRev1() bool })
	return ok && a.AllowRev1()
}

// responds is how setup asks auth for the session of a connection.
func responds(auth Authenticator) func(context.Context, setup.Arrival) (setup.Sealer, error) {
	return func(ctx context.Context, a setup.Arrival) (setup.Sealer, error) {
		s, err := auth.Respond(ctx, &AuthInfo{Network: a.Network, Local: a.Local, Remote: a.Remote, MaxPrivate: a.MaxPrivate})
		if s == nil { // else the interface would not be nil
			return nil, err
		}
		return s, err
	}
}

// authenticate puts the first message of the session into the configuration of a stream: that
// which proves an initiator, or that which a responder must see.
func (qp *QP) authenticate(c *rdmap.Config) (err error) {
	s := qp.identity.own()
	switch {
	case s == nil, s.FirstLen() == 0:
		return nil
	case qp.terms.Initiator:
		qp.proves = true
		c.RTR = 0
		c.First, err = s.First()
		return err
	}
	qp.admitted = make(chan struct{})
	switch n := s.FirstLen(); {
	case !isFirstLen(n):
		return errFirstLen
	case qp.terms.RTR != 0:
		return errAskedRTR
	default:
		c.Gate = &rdmap.Gate{Len: n, Verify: s.VerifyFirst, Opened: func() { close(qp.admitted) }}
		return nil
	}
}

// admit waits, within ctx, until the initiator has proved itself.
func (qp *QP) admit(ctx context.Context) error {
	if qp.admitted == nil {
		return nil
	}
	select {
	case <-qp.admitted:
	case <-qp.done:
	case <-ctx.Done():
		if !qp.wasAdmitted() {
			qp.abort(fmt.Errorf("%w: %w", errNoProof, context.Cause(ctx)))
			<-qp.done
		}
	}
	if qp.wasAdmitted() { // also where the peer has ended the connection since
		return nil
	}
	err := qp.Err()
	switch {
	case err == nil: // the peer has ended its half
		return errEnded
	case errors.Is(err, ErrAuth):
		return err
	}
	return fmt.Errorf("%w: the connection ended before the first message of the initiator: %w", ErrAuth, clause{err})
}

// wasAdmitted reports whether the peer has proved itself, or need not.
func (qp *QP) wasAdmitted() bool {
	if qp.admitted == nil {
		return true
	}
	select {
	case <-qp.admitted:
		return true
	default:
		return false
	}
}

// notBelieved reports whether a Terminate of the peer with this code, the first that has come of
// it, says that our first message does not prove anything.
func (qp *QP) notBelieved(c transport.Code) bool {
	if !qp.proves || c != transport.RDMAPStreamCatastrophic {
		return false
	}
	before := qp.Stats().Received
	before.Terminate = Traffic{}
	return before == (OpStats{})
}
