// Package authn has what an authenticated connection knows of its peer, and the way to it: the
// session of each attempt of a set-up, the first message that proves the initiator, and the wait
// for it. It knows no verbs: a Peer of theirs is a type parameter.
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

// A Session authenticates one set-up, and then has the keys of the connection.
type Session[P any] interface {
	transport.Sealer
	First() ([]byte, error)
	FirstLen() int
	VerifyFirst(msg []byte) error
	Peer() P
	Export(label string, context []byte, n int) ([]byte, error)
	Close()
}

// Verbs are what must be known of the verbs, whose peer is a P.
type Verbs[P any] struct {
	Known     func(p P) bool // whether a session has found out which peer it is
	Certified func(name [16]byte, id [32]byte) P
	Failed    error // matched if a peer has not authenticated itself
}

// An Identity is what a connection knows of its peer, by a session or by TLS. That of a connection
// without either is nil, of which any method but those of the set-up of an initiator may be called.
type Identity[P any] struct {
	verbs *Verbs[P]
	guard sync.Locker // of session, found and secure

	session *session[P] // nil: there is none, or it was closed
	found   P           // the peer of a session that was closed, if that has proved itself
	secure  *tls.ConnectionState

	// Set by Configure, before other goroutines look at them.
	admitted chan struct{} // closed when the first message of the initiator was verified; nil: it need not be
	proves   bool          // our first message proves our identity
}

// A session is closed when the last of its users has left, the connection being one of them.
type session[P any] struct {
	Session[P]
	users int
	owned bool // else it is closed elsewhere: that of a responder is until the connection is there
}

// ForInitiator is what an initiator knows before its set-up.
func ForInitiator[P any](guard sync.Locker, v *Verbs[P]) *Identity[P] {
	return &Identity[P]{verbs: v, guard: guard}
}

// ForResponder is what a responder knows by the session that has opened the Request, and by TLS;
// either may be nil.
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

// begin puts a session in the place of one whose attempt has failed.
func (i *Identity[P]) begin(s Session[P]) {
	i.End(false)
	i.guard.Lock()
	defer i.guard.Unlock()
	i.session = &session[P]{Session: s, users: 1, owned: true}
}

// own makes the session, if there is one, that of the connection: End closes it.
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

// End closes the session, once all of its users have left. If the peer has proved itself, Peer goes on to tell which it was.
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

// enter makes the caller a user of the session, if there is one, until it calls leave. The
// functions of a session are called without the lock, for they are not ours.
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

// Peer reports whether the peer is known.
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

// peerOf returns the peer of the session s, or of the one that was closed.
func (i *Identity[P]) peerOf(s *session[P]) P {
	if s != nil {
		return s.Peer()
	}
	i.guard.Lock()
	defer i.guard.Unlock()
	return i.found
}

// identify identifies the peer with this certificate, by its key.
func identify(c *x509.Certificate) (name [16]byte, id [32]byte) {
	key := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	const noGroup = 0
	id = sha256.Sum256(append([]byte("iwarp peer v1\x00\x03"), append([]byte{noGroup}, key[:]...)...))
	return [16]byte(key[:]), id
}

var errSessionEnded = fmt.Errorf("iwarp: export: the session has ended with the connection: %w", net.ErrClosed)

// Export derives n octets from the keys of the session, or else from those of TLS. none is the
// error of a connection that has no keys.
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

// The most that every cipher suite of TLS 1.3 can export, and the longest label, in octets (RFC
// 8446 section 7.1). Package tls panics beyond them.
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
