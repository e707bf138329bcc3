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

// responds is how setup asks auth for the session of a connection.
func responds(auth Authenticator) func(context.Context, setup.Arrival) (setup.Sealer, error) {
	return func(ctx context.Context, a setup.Arrival) (setup.Sealer, error) {
		return auth.Respond(ctx, &AuthInfo{Network: a.Network, Local: a.Local, Remote: a.Remote, MaxPrivate: a.MaxPrivate})
	}
}

// Peer tells which peer the Authenticator has found at the other end, or else TLS if it has shown
// a certificate; also when the QP has ended. It reports false if neither has: the peer may be anyone. TLS is
// that of QPConfig.TLS and ListenConfig.TLS. Of a *tls.Conn that was given to [RNIC.Client] or [RNIC.Server]
// only the program knows the handshake.
func (qp *QP) Peer() (Peer, bool) { return qp.identity.Peer() }

// Export derives n octets from the keys of the connection, for a use that label and context name:
// the same on both sides, and different on any other connection. They come from the session of the
// Authenticator, which ends with the QP: the error matches net.ErrClosed then. Without one they come from TLS 1.3
// (RFC 8446 section 7.5), also when the QP has ended; a context of nil is the same as an empty one, n is at most 8,160,
// and label has at most 249 octets. A connection with neither, or whose TLS is the program's own (see Peer), answers
// with an error that matches ErrUnsupported.
func (qp *QP) Export(label string, context []byte, n int) ([]byte, error) {
	return qp.identity.Export(errNoKeys, label, context, n)
}
