package setup

import (
	"context"
	"net"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
)

// A Layer is a connection over an LLP that needs no set-up, such as an LLP in memory. It is passed
// to RNIC.Client at both ends: programs of this module run the verbs over such an LLP this way.
// Nothing is sent, so the configurations of both ends replace the negotiation.
type Layer struct {
	net.Conn // nil: there are no octets to read or to write
	LLP      transport.LLP
}

// Close closes the LLP.
func (y *Layer) Close() error { return y.LLP.Close() }

// LocalAddr returns the local address of the LLP.
func (y *Layer) LocalAddr() net.Addr { return y.LLP.LocalAddr() }

// RemoteAddr returns the remote address of the LLP.
func (y *Layer) RemoteAddr() net.Addr { return y.LLP.RemoteAddr() }

// establish hands the LLP over.
func (y *Layer) establish(ctx context.Context, l *Local) error {
	if err := l.prepare(ctx); err != nil {
		y.LLP.Abort(err)
		return err
	}
	return l.Establish(ctx, y.LLP, &mpa.Terms{IRD: max(l.IRD, 0), ORD: max(l.ORD, 0), PeerIRD: -1, PeerORD: -1})
}
