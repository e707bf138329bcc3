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

// The SCTP networks.
const (
	SCTP    = "sctp"     // SCTP of the kernel
	SCTPUDP = "sctp+udp" // SCTP in user space, over UDP
)

// IsSCTP reports whether a network provides SCTP sessions instead of byte streams.
func IsSCTP(network string) bool { return network == SCTP || network == SCTPUDP }

// A Local describes this side of one connection.
type Local struct {
	// MPA applies to SCTP sessions too, except for options about frames.
	MPA         mpa.Options
	NoFallback  bool // Dial makes only one attempt
	IRD, ORD    int
	PrivateData []byte      // of our Request or Reply
	TLS         *tls.Config // of an initiator; nil: no TLS
	Trace       io.Writer   // nil: none
	Stages      StageTrace  // of an initiator
	// Seal authenticates the connection of an initiator, in one attempt. The caller keeps
	// ownership of it. nil: the connection is not authenticated.
	Seal transport.Sealer
	// Again returns the Sealer for a second attempt of Dial, and its options, after the first
	// attempt has failed with err; nil: there is no second attempt.
	Again func(ctx context.Context, err error) (transport.Sealer, *mpa.Options)
	// Secured, if not nil, is called with the outcome of the TLS handshake.
	Secured func(s tls.ConnectionState)
	// Prepare is called once, before our Request or Reply is sent. Its error ends the set-up.
	Prepare func(ctx context.Context) error
	// Establish takes over the connection. ctx is the context of the exchange: if it has ended, or
	// if terms contain a fault, Establish must tell the peer. The set-up returns its error.
	Establish func(ctx context.Context, llp transport.LLP, terms *mpa.Terms) error
}

// CheckRequest returns an error if the Request would be invalid, before anything is connected.
func (l *Local) CheckRequest(network string) error {
	n := len(l.PrivateData)
	if IsSCTP(network) {
		return l.session().CheckRequest(n)
	}
	return l.options().CheckRequest(n)
}

// MaxPrivate returns how many octets of private data fit into a Request, including the octets
// that Seal adds.
func (l *Local) MaxPrivate(network string) int {
	if IsSCTP(network) {
		return l.session().MaxPrivate()
	}
	return l.MPA.MaxPrivate()
}

// options returns MPA with Seal.
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

// traced records the octets that pass s if there is a Trace.
func (l *Local) traced(s transport.Stream, o transport.TapOptions) transport.Stream {
	if l.Trace == nil {
		return s
	}
	return transport.Tap(s, l.Trace, o)
}

// session translates MPA into SCTP options.
func (l *Local) session() sctp.Options {
	o := l.MPA
	return sctp.Options{
		Plain: o.Revision == mpa.Revision1, FixedDepths: o.FixedDepths, StrictDepths: o.StrictDepths, MaxULPDU: o.MaxULPDU,
		Seal: l.Seal,
	}
}

// sessionTerms translates the terms of a session into those of MPA, which have more fields.
func sessionTerms(t *sctp.Terms) *mpa.Terms {
	return &mpa.Terms{
		IRD: t.IRD, ORD: t.ORD, PeerIRD: t.PeerIRD, PeerORD: t.PeerORD, RTR: t.RTR,
		PeerPrivateData: t.PeerPrivateData, Fault: t.Fault,
	}
}
