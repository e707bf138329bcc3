package setup

import (
	"context"
	"net"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
)

// A Layer makes a connection of an LLP that needs no set-up, as those in memory. RNIC.Client
// takes it, at both ends: this is how programs of this module run the verbs over such an LLP.
// Nothing is sent, so what would be negotiated is what the configurations of both ends say.
type Layer struct {
	net.Conn // nil: there are no octets to read or to write
	LLP      transport.LLP
}

// Close closes the LLP.
func (y *Layer) Close() error { return y.LLP.Close() }

// LocalAddr is that of the LLP.
func (y *Layer) LocalAddr() net.Addr { return y.LLP.LocalAddr() }

// RemoteAddr is that of the LLP.
func (y *Layer) RemoteAddr() net.Addr { return y.LLP.RemoteAddr() }

// establish hands the LLP over.
func (y *Layer) establish(ctx context.Context, l *Local) error {
	if err := l.prepare(ctx); err != nil {
		y.LLP.Abort(err)
		return err
	}
	return l.Establish(ctx, y.LLP, &mpa.Terms{IRD: max(l.IRD, 0), ORD: max(l.ORD, 0), PeerIRD: -1, PeerORD: -1})
}
