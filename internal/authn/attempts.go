package authn

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
	errRTRAndAuth = errors.New("MPAOptions.RTR and StrictRTR cannot be used with an Authenticator whose first message takes the place of the RTR")
	errNoSession  = errors.New("the Authenticator has returned no session")
	errFirstLen   = fmt.Errorf("the first message of an AuthSession may have 0 to %d octets", rdmap.MaxFirst)
)

// Attempts arranges that each attempt of the set-up that l describes is authenticated: the first one by
// auth, an A, and another one by the A that the error of the first requests. initiate begins a session.
func Attempts[A, P any](ctx context.Context, i *Identity[P], l *setup.Local, auth A, initiate func(context.Context, A) (Session[P], error)) error {
	a := attempts[A, P]{identity: i, auth: auth, initiate: initiate, wanted: l.MPA, noFallback: l.NoFallback}
	l.Again = a.again
	s, o, err := a.begin(ctx, auth, l.MPA)
	if err != nil {
		return err
	}
	l.Seal, l.MPA = s, *o
	return nil
}

type attempts[A, P any] struct {
	identity   *Identity[P]
	auth       A
	initiate   func(context.Context, A) (Session[P], error)
	wanted     mpa.Options // of the program
	noFallback bool
}

// begin begins a session, and adapts the options o to it.
func (a *attempts[A, P]) begin(ctx context.Context, auth A, o mpa.Options) (transport.Sealer, *mpa.Options, error) {
	s, err := a.initiate(ctx, auth)
	if err == nil && s == nil {
		err = errNoSession
	}
	if err != nil {
		return nil, nil, err
	}
	a.identity.begin(s)
	switch n := s.FirstLen(); {
	case !isFirstLen(n):
		return nil, nil, errFirstLen
	case n > 0 && (o.RTR != 0 || o.StrictRTR):
		return nil, nil, errRTRAndAuth
	case n > 0:
		o.ClientServer = true
	}
	return s, &o, nil
}

func isFirstLen(n int) bool { return 0 <= n && n <= rdmap.MaxFirst }

// again begins the session of a second attempt after err, if err allows one.
func (a *attempts[A, P]) again(ctx context.Context, err error) (transport.Sealer, *mpa.Options) {
	o := a.wanted
	auth := retries[A](err)
	if any(auth) == nil && setup.NoAnswer(err, a.wanted) && allowsRev1(a.auth) && !a.noFallback {
		auth, o.Revision = a.auth, mpa.Revision1
	}
	if any(auth) == nil {
		return nil, nil
	}
	s, fit, err := a.begin(ctx, auth, o)
	if err != nil {
		return nil, nil
	}
	return s, fit
}

// retries returns the Authenticator that err requests for another attempt, or nil.
func retries[A any](err error) (auth A) {
	var again interface {
		error
		Retry() A
	}
	if errors.As(err, &again) {
		return again.Retry()
	}
	return auth
}

// allowsRev1 reports whether auth accepts revision 1, whose frames contain fewer of the parameters
// that are to be authenticated.
func allowsRev1(auth any) bool {
	a, ok := auth.(interface{ AllowRev1() bool })
	return ok && a.AllowRev1()
}
