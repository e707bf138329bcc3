// Package authn holds what an authenticated connection knows about its peer, and obtains it: by the
// session of each attempt of a set-up, the first message that proves the initiator, and the wait
// for that message. It does not depend on the verbs: their Peer is a type parameter.
package authn

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"sync"

	"github.com/goiwarp/iwarp/transport"
)

// A Session authenticates one set-up, and then holds the keys of the connection.
type Session[P any] interface {
	transport.Sealer
	First() ([]byte, error)
	FirstLen() int
	VerifyFirst(msg []byte) error
	Peer() P
	Export(label string, context []byte, n int) ([]byte, error)
	Close()
}

// Verbs is what this package must know about the verbs, whose peer is a P.
type Verbs[P any] struct {
	Known     func(p P) bool // reports whether a session has identified the peer
	Certified func(name [16]byte, id [32]byte) P
	Failed    error // matched if a peer has not authenticated itself
}

// An Identity is what a connection knows about its peer, by a session or by TLS. It is nil for a
// connection without either; all methods except those of an initiator's set-up accept nil.
type Identity[P any] struct {
	verbs *Verbs[P]
	guard sync.Locker // of session, found and secure

	session *session[P] // nil: there is none, or it was closed
	found   P           // the peer of a closed session, if it had proved its identity
	secure  *tls.ConnectionState

	// Set by Configure, before other goroutines read them.
	admitted chan struct{} // closed when the first message of the initiator was verified; nil: it need not be
	proves   bool          // our first message proves our identity
}

// A session is closed when the last of its users has left. The connection is one of them.
type session[P any] struct {
	Session[P]
	users int
	owned bool // if false, others close it, as for a responder until the connection exists
}

// ForInitiator returns the Identity of an initiator before its set-up.
func ForInitiator[P any](guard sync.Locker, v *Verbs[P]) *Identity[P] {
	return &Identity[P]{verbs: v, guard: guard}
}

// ForResponder returns the Identity of a responder, from the session that has opened the Request and
// from TLS; either may be nil.
func ForResponder[P any](guard sync.Locker, v *Verbs[P], s Session[P], secure *tls.ConnectionState) *Identity[P] {
	if s == nil && secure == nil {
		return nil
	}
	i := &Identity[P]{verbs: v, guard: guard, secure: secure}
	if s != nil {
		i.session = &session[P]{Session: s, users: 1}
	}
	return i
}

// begin stores a session in place of the session of a failed attempt.
func (i *Identity[P]) begin(s Session[P]) {
	i.End(false)
	i.guard.Lock()
	defer i.guard.Unlock()
	i.session = &session[P]{Session: s, users: 1, owned: true}
}

// own makes the connection the owner of the session, if there is one: End closes it.
func (i *Identity[P]) own() Session[P] {
	if i == nil {
		return nil
	}
	i.guard.Lock()
	defer i.guard.Unlock()
	if i.session == nil {
		return nil
	}
	i.session.owned = true
	return i.session.Session
}

// Secured notes the outcome of TLS.
func (i *Identity[P]) Secured(s tls.ConnectionState) {
	i.guard.Lock()
	defer i.guard.Unlock()
	i.secure = &s
}

// End closes the session, once all of its users have left. If the peer has proved its identity, Peer still returns it.
func (i *Identity[P]) End(proved bool) {
	if i == nil {
		return
	}
	user, _ := i.enter()
	var found P
	if user != nil && proved {
		found = user.Peer()
	}
	i.guard.Lock()
	s := i.session
	if i.session = nil; s != nil {
		i.found = found
	}
	i.guard.Unlock()
	i.leave(s)
	i.leave(user)
}

// enter makes the caller a user of the session, if there is one, until it calls leave. The methods
// of a session are called without the lock, because they are not ours.
func (i *Identity[P]) enter() (*session[P], *tls.ConnectionState) {
	if i == nil {
		return nil, nil
	}
	i.guard.Lock()
	defer i.guard.Unlock()
	if i.session != nil {
		i.session.users++
	}
	return i.session, i.secure
}

func (i *Identity[P]) leave(s *session[P]) {
	if s == nil {
		return
	}
	i.guard.Lock()
	s.users--
	last := s.users == 0 && s.owned
	i.guard.Unlock()
	if last {
		s.Close()
	}
}

// Peer returns the peer, and reports whether it is known.
func (i *Identity[P]) Peer() (p P, known bool) {
	if i == nil {
		return p, false
	}
	s, secure := i.enter()
	defer i.leave(s)
	if found := i.peerOf(s); i.verbs.Known(found) {
		return found, true
	}
	if secure == nil || len(secure.PeerCertificates) == 0 {
		return p, false
	}
	return i.verbs.Certified(identify(secure.PeerCertificates[0])), true
}

// peerOf returns the peer of the session s or, if s is nil, of the closed session.
func (i *Identity[P]) peerOf(s *session[P]) P {
	if s != nil {
		return s.Peer()
	}
	i.guard.Lock()
	defer i.guard.Unlock()
	return i.found
}

// identify returns the identity of the peer with this certificate, from its key.
func identify(c *x509.Certificate) (name [16]byte, id [32]byte) {
	key := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	const noGroup = 0
	id = sha256.Sum256(append([]byte("iwarp peer v1\x00\x03"), append([]byte{noGroup}, key[:]...)...))
	return [16]byte(key[:]), id
}

var errSessionEnded = fmt.Errorf("iwarp: export: the session has ended with the connection: %w", net.ErrClosed)

// Export derives n octets from the keys of the session, if it has identified the peer, or else from the
// keys of TLS. none is the error of a connection without keys.
func (i *Identity[P]) Export(none error, label string, context []byte, n int) ([]byte, error) {
	if i == nil {
		return nil, none
	}
	s, secure := i.enter()
	defer i.leave(s)
	known := i.verbs.Known(i.peerOf(s))
	switch {
	case known && s == nil:
		return nil, errSessionEnded
	case known:
		return s.Export(label, context, n)
	case secure != nil:
		return exportTLS(secure, label, context, n)
	}
	return nil, none
}

// The largest export that every cipher suite of TLS 1.3 supports, and the longest label, in octets
// (RFC 8446 section 7.1). Package tls panics beyond them.
const (
	maxExport = 255 * sha256.Size
	maxLabel  = 255 - len("tls13 ")
)

func exportTLS(secure *tls.ConnectionState, label string, context []byte, n int) ([]byte, error) {
	switch {
	case n < 0 || n > maxExport:
		return nil, fmt.Errorf("iwarp: export: %d octets, at most %d are possible", n, maxExport)
	case len(label) > maxLabel:
		return nil, fmt.Errorf("iwarp: export: a label of %d octets, at most %d are possible", len(label), maxLabel)
	}
	b, err := secure.ExportKeyingMaterial(label, context, n)
	if err != nil {
		err = fmt.Errorf("iwarp: export: %w", err)
	}
	return b, err
}
