package setup

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// The networks of SCTP.
const (
	SCTP    = "sctp"     // that of the kernel
	SCTPUDP = "sctp+udp" // that of user space, over UDP
)

// IsSCTP tells whether a network has sessions of SCTP, and not byte streams.
func IsSCTP(network string) bool { return network == SCTP || network == SCTPUDP }

// A Local is what this side brings to one connection.
type Local struct {
	// MPA holds for sessions of SCTP too, as far as it is not about frames.
	MPA         mpa.Options
	NoFallback  bool // Dial tries once
	IRD, ORD    int
	PrivateData []byte      // of our Request or Reply
	TLS         *tls.Config // of an initiator; nil: no TLS
	Trace       io.Writer   // nil: none
	Stages      StageTrace  // of an initiator
	// Seal authenticates the connection of an initiator, in one attempt. It stays the caller's.
	// nil: the connection is not authenticated.
	Seal transport.Sealer
	// Again returns what authenticates a second attempt of Dial, and its options, after the first
	// one has failed with err; nil: there is none.
	Again func(ctx context.Context, err error) (transport.Sealer, *mpa.Options)
	// Secured is called with the outcome of the handshake of TLS; nil: it is not wanted.
	Secured func(s tls.ConnectionState)
	// Prepare is called once, before our Request or Reply is sent. Its error ends the set-up.
	Prepare func(ctx context.Context) error
	// Establish takes the connection over. ctx is that of the exchange: if it has ended, or if
	// terms tell of a fault, the peer is to be told so. The set-up has the same outcome.
	Establish func(ctx context.Context, llp transport.LLP, terms *mpa.Terms) error
}

// CheckRequest finds out what is wrong with a Request before anything is connected.
func (l *Local) CheckRequest(network string) error {
	n := len(l.PrivateData)
	if IsSCTP(network) {
		return l.session().CheckRequest(n)
	}
	return l.options().CheckRequest(n)
}

// MaxPrivate is how many octets of private data a Request has room for, with what Seal adds to
// them.
func (l *Local) MaxPrivate(network string) int {
	if IsSCTP(network) {
		return l.session().MaxPrivate()
	}
	return l.MPA.MaxPrivate()
}

// options are MPA with Seal.
func (l *Local) options() mpa.Options {
	o := l.MPA
	o.Seal = l.Seal
	return o
}

// prepare calls Prepare.
func (l *Local) prepare(ctx context.Context) error {
	if err := l.Prepare(ctx); err != nil {
		return fmt.Errorf("setup: %w", err)
	}
	return nil
}

// traced records what passes s if there is a Trace.
func (l *Local) traced(s transport.Stream, o transport.TapOptions) transport.Stream {
	if l.Trace == nil {
		return s
	}
	return transport.Tap(s, l.Trace, o)
}

// session is MPA in the words of SCTP.
func (l *Local) session() sctp.Options {
	o := l.MPA
	return sctp.Options{
		Plain: o.Revision == mpa.Revision1, FixedDepths: o.FixedDepths, StrictDepths: o.StrictDepths, MaxULPDU: o.MaxULPDU,
		Seal: l.Seal,
	}
}

// sessionTerms says the terms of a session in the words of MPA, which have more in them.
func sessionTerms(t *sctp.Terms) *mpa.Terms {
	return &mpa.Terms{
		IRD: t.IRD, ORD: t.ORD, PeerIRD: t.PeerIRD, PeerORD: t.PeerORD, RTR: t.RTR,
		PeerPrivateData: t.PeerPrivateData, Fault: t.Fault,
	}
}
