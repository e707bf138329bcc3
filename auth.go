package iwarp

import (
	"context"
	"errors"
	"net"

	"github.com/goiwarp/iwarp/internal/authn"
	"github.com/goiwarp/iwarp/transport"
)

// ErrAuth is matched by every error of a connection that ends because one side did not
// authenticate itself, or because its authentication could not be verified. The errors of both sides
// match it, except that a refused side without an Authenticator gets a *RejectError.
var ErrAuth = errors.New("iwarp: authentication failed")

// An Authenticator authenticates the set-up of connections: their start-up frames, and the
// initiator's first message. Package cm provides one. Its methods may be called concurrently;
// the state of one set-up is in its [AuthSession]. The methods may block until ctx, the context of
// the set-up, ends; the end of the RNIC ends it, too.
type Authenticator interface {
	// Initiate begins the set-up of a connection that this side requests.
	Initiate(ctx context.Context, info *AuthInfo) (AuthSession, error)
	// Respond begins the set-up of a connection that an initiator requests.
	Respond(ctx context.Context, info *AuthInfo) (AuthSession, error)
}

// An AuthInfo describes a connection before its first start-up frame.
type AuthInfo struct {
	Network    string // tcp, sctp or sctp+udp for example
	Local      net.Addr
	Remote     net.Addr
	Target     string // the address that Dial was given; empty for a responder and for Client
	MaxPrivate int    // octets of ULP private data that fit in the Request, or in a Reply with the options that allow most
}

// An AuthSession authenticates one set-up. Only one goroutine uses it at a time, except that any
// goroutine may call Peer and Export once the connection is established.
type AuthSession interface {
	// An error of Open ends the set-up; on the responder it is passed to Refuse. It should match
	// ErrAuth.
	transport.Sealer

	// First returns the message by which the initiator proves its identity. It is sent after the
	// start-up frames and before all other messages. nil means that there is none.
	First() ([]byte, error)
	// FirstLen returns the length in octets of the message that the responder must receive first,
	// or 0 if there is none. Until VerifyFirst has accepted that message, nothing from the peer is
	// placed or answered, and nothing is sent.
	FirstLen() int
	VerifyFirst(msg []byte) error

	// Peer and Export are valid once the set-up has succeeded.
	Peer() Peer
	Export(label string, context []byte, n int) ([]byte, error)

	// Close ends the session, and wipes its secrets. It is called once, at the end of the
	// connection or of a failed set-up.
	Close()
}

// A Peer is the identity that an Authenticator has found at the other end.
type Peer struct {
	ID    [32]byte // an identity that survives the rotation of keys
	Kind  uint8    // what the identity is based on: PeerCertificate, or a kind of the Authenticator, such as cm.KindDerived
	Group string   // the group of keys
	Name  [16]byte // the name of the peer within the group
	KeyID uint64   // the key that the set-up used
	Mode  uint8    // the mode of the Authenticator, such as cm.ModeB
	Suite uint8    // the suite of the Authenticator, such as cm.SuiteX25519
}

// PeerCertificate is the Kind of a [Peer] that TLS has identified by a certificate. The configuration of TLS
// says whether the certificate was verified. Its Name is the beginning of the SHA-256 of the public key.
const PeerCertificate = 3

// authVerbs is what package authn needs of this package.
var authVerbs = authn.Verbs[Peer]{
	Known:     func(p Peer) bool { return p.Kind != 0 },
	Certified: func(name [16]byte, id [32]byte) Peer { return Peer{Kind: PeerCertificate, Name: name, ID: id} },
	Failed:    ErrAuth,
}
