package iwarp

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp/internal/authn"
	"github.com/goiwarp/iwarp/internal/setup"
)

var errNoKeys = fmt.Errorf("%w: export of keys from a connection without an Authenticator or TLS", ErrUnsupported)

// authenticates begins a session for the connection that l describes, if there is an
// Authenticator.
func authenticates(ctx context.Context, qp *QP, l *setup.Local, info *AuthInfo) error {
	if qp.cfg.Auth == nil {
		return nil
	}
	info.MaxPrivate = l.MaxPrivate(info.Network)
	return authn.Attempts(ctx, qp.identity, l, qp.cfg.Auth, func(ctx context.Context, auth Authenticator) (authn.Session[Peer], error) {
		return auth.Initiate(ctx, info)
	})
}

// responds returns the function by which package setup requests the session of a connection from auth.
func responds(auth Authenticator) func(context.Context, setup.Arrival) (setup.Sealer, error) {
	return func(ctx context.Context, a setup.Arrival) (setup.Sealer, error) {
		return auth.Respond(ctx, &AuthInfo{Network: a.Network, Local: a.Local, Remote: a.Remote, MaxPrivate: a.MaxPrivate})
	}
}

// Peer returns the identity that the Authenticator has found at the other end, or else the identity of the
// certificate that the peer presented in TLS. It also works after the QP has ended. It reports false if there
// is neither: the peer may be anyone. Only QPConfig.TLS and ListenConfig.TLS count: the handshake of a *tls.Conn
// that was passed to [RNIC.Client] or [RNIC.Server] is known only to the program.
func (qp *QP) Peer() (Peer, bool) { return qp.identity.Peer() }

// Export derives n octets from the keys of the connection, for the use that label and context name.
// They are the same on both sides, and different on any other connection. With an Authenticator they come
// from its session, which ends with the QP: from then on the error matches net.ErrClosed. Otherwise they come from
// TLS 1.3 (RFC 8446 section 7.5), even after the QP has ended; a nil context is the same as an empty one, n is at most
// 8,160, and label has at most 249 octets. On a connection with neither, or whose TLS is the program's own (see Peer),
// the error matches ErrUnsupported.
func (qp *QP) Export(label string, context []byte, n int) ([]byte, error) {
	return qp.identity.Export(errNoKeys, label, context, n)
}
