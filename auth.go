package iwarp

import (
	"context"
	"errors"
	"net"

	"github.com/goiwarp/iwarp/internal/authn"
	"github.com/goiwarp/iwarp/transport"
)

// ErrAuth is matched by each error of a connection that ends because one side has not
// authenticated itself, or because that could not be verified: on the side that refuses, and on the side that
// is refused, but not on one without an Authenticator: it gets a *RejectError.
var ErrAuth = errors.New("iwarp: authentication failed")

// An Authenticator authenticates the set-up of connections: their start-up frames, and the
// first message of the initiator. Package cm has one. Its methods may be called concurrently;
// what belongs to one set-up is in its [AuthSession]. They may wait until ctx ends, which is that of the
// set-up and ends with the RNIC, too.
type Authenticator interface {
	// Initiate begins the set-up of a connection that this side asks for.
	Initiate(ctx context.Context, info *AuthInfo) (AuthSession, error)
	// Respond begins the set-up of a connection that an initiator asks for.
	Respond(ctx context.Context, info *AuthInfo) (AuthSession, error)
}

// An AuthInfo is what is known of a connection before its first start-up frame.
type AuthInfo struct {
	Network    string // tcp, sctp or sctp+udp for example
	Local      net.Addr
	Remote     net.Addr
	Target     string // the address that Dial was given; empty for a responder and for Client
	MaxPrivate int    // octets of private data of the ULP that the Request has room for, or a Reply whose options allow most
}

// An AuthSession authenticates one set-up. One goroutine at a time uses it, but for Peer and
// Export, which may be called by any once the connection is established.
type AuthSession interface {
	// An error of Open ends the set-up, and goes to Refuse on the responder. It should match
	// ErrAuth.
	transport.Sealer

	// First returns the message with which the initiator proves itself after the start-up
	// frames, ahead of all others; nil: there is none.
	First() ([]byte, error)
	// FirstLen is the length in octets of the message that the responder must see first; 0: none.
	// Until VerifyFirst has accepted it nothing of the peer is placed or answered, and nothing is
	// sent.
	FirstLen() int
	VerifyFirst(msg []byte) error

	// Peer and Export are valid once the set-up has succeeded.
	Peer() Peer
	Export(label string, context []byte, n int) ([]byte, error)

	// Close ends the session, and wipes its secrets. It is called once, at the end of the
	// connection or of a set-up that has failed.
	Close()
}

// A Peer is the identity that an Authenticator has found at the other end.
type Peer struct {
	ID    [32]byte // an identity that survives the rotation of keys
	Kind  uint8    // what the identity stands on: PeerCertificate, or one of the Authenticator's, such as cm.KindDerived
	Group string   // of keys
	Name  [16]byte // that the peer goes by within the group
	KeyID uint64   // of the key that the set-up has used
	Mode  uint8    // of the Authenticator, such as cm.ModeB
	Suite uint8    // of the Authenticator, such as cm.SuiteX25519
}

// PeerCertificate is the Kind of a [Peer] that TLS has identified by a certificate. The configuration of TLS
// says whether the certificate was verified. Its Name is the beginning of the SHA-256 of the public key.
const PeerCertificate = 3

// authVerbs are what package authn has to know of ours.
var authVerbs = authn.Verbs[Peer]{
	Known:     func(p Peer) bool { return p.Kind != 0 },
	Certified: func(name [16]byte, id [32]byte) Peer { return Peer{Kind: PeerCertificate, Name: name, ID: id} },
	Failed:    ErrAuth,
}
