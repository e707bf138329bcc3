package iwarp

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// PeerCertificate is the Kind of a [Peer] that TLS has authenticated: its Name is the beginning
// of the SHA-256 of the public key in its certificate.
const PeerCertificate = 3

// An identity is what a connection knows of its peer, by an AuthSession or by TLS. That of a
// connection without either is nil.
type identity struct {
	mu      lockorder.Mutex[lockorder.Leaf]
	session AuthSession // nil: there is none, or it was closed
	owned   bool        // end closes it: the request of a responder is no longer there to do so
	secure  *tls.ConnectionState
}

// begin puts a session in the place of one whose attempt has failed.
func (i *identity) begin(s AuthSession) {
	i.end()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.session, i.owned = s, true
}

// own makes the session, if there is one, that of the connection: end closes it.
func (i *identity) own() AuthSession {
	if i == nil {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.owned = true
	return i.session
}

// secured notes the outcome of TLS.
func (i *identity) secured(s tls.ConnectionState) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.secure = &s
}

// end closes the session.
func (i *identity) end() {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.session != nil && i.owned {
		i.session.Close()
	}
	i.session = nil
}

// peer reports whether the peer is known.
func (i *identity) peer() (Peer, bool) {
	if i == nil {
		return Peer{}, false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.session != nil {
		if p := i.session.Peer(); p.Kind != 0 {
			return p, true
		}
	}
	if i.secure == nil || len(i.secure.PeerCertificates) == 0 {
		return Peer{}, false
	}
	return certified(i.secure.PeerCertificates[0]), true
}

// certified is the peer with this certificate. Its identity is that of its key.
func certified(c *x509.Certificate) Peer {
	key := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	p := Peer{Kind: PeerCertificate}
	copy(p.Name[:], key[:])
	const noGroup = 0
	p.ID = sha256.Sum256(append([]byte("iwarp peer v1\x00\x03"), append([]byte{noGroup}, key[:]...)...))
	return p
}

func (i *identity) export(label string, context []byte, n int) ([]byte, error) {
	if i == nil {
		return nil, errNoKeys
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.session != nil && i.session.Peer().Kind != 0:
		return i.session.Export(label, context, n)
	case i.secure != nil:
		b, err := i.secure.ExportKeyingMaterial(label, context, n)
		if err != nil {
			err = fmt.Errorf("iwarp: export: %w", err)
		}
		return b, err
	}
	return nil, errNoKeys
}

var errNoKeys = fmt.Errorf("%w: export of keys from a connection without an Authenticator or TLS", ErrUnsupported)

// Peer tells which peer the Authenticator has found at the other end, or else TLS if it has shown
// a certificate. It reports false if neither has: the peer may be anyone.
func (qp *QP) Peer() (Peer, bool) { return qp.identity.peer() }

// Export derives n octets from the keys of the connection, for a use that label and context name:
// the same on both sides, and different on any other connection. They come from the session of the
// Authenticator, or else from TLS 1.3 (RFC 8446 section 7.5), where a context of nil differs from
// an empty one. A connection with neither answers with an error that matches ErrUnsupported; a
// QP whose session has ended with it falls back in the same way.
func (qp *QP) Export(label string, context []byte, n int) ([]byte, error) {
	return qp.identity.export(label, context, n)
}

// Peer is that of [QP.Peer]. An Authenticator that has the initiator prove itself by its first
// message (FirstLen) knows it for certain only when Accept has returned.
func (cr *ConnRequest) Peer() (Peer, bool) { return cr.identity.peer() }

// Serve calls handle for each connection request, in a goroutine of its own, until ctx or the
// listener ends; the error tells which. It does not wait for handlers. A request that handle has
// not answered when it returns is closed.
//
// With an Authenticator it is the better way to take connections, because Accept waits for the
// first message of the initiator: where one goroutine answers the requests in turn, an initiator
// that never sends it holds up all others. ListenConfig.MaxHalfOpen bounds the requests, and
// so the goroutines, that have not been answered.
func (l *Listener) Serve(ctx context.Context, handle func(*ConnRequest)) error {
	for {
		cr, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		go func() {
			defer cr.abandon()
			handle(cr)
		}()
	}
}
