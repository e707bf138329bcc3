package iwarp_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
)

// crcOnly ends a Request or Reply of revision 1 that asks for CRCs, so that nothing is
// negotiated.
const crcOnly = "40 01 00 00"

// initiator connects to a listener of r and plays the initiator. The QP of qc is the
// responder.
func initiator(t testing.TB, r *iwarp.RNIC, network string, qc *iwarp.QPConfig) (*wiretest.Peer, *iwarp.QP) {
	t.Helper()
	if wiretest.LLP != nil {
		return overLLP(t, r, qc)
	}
	p, cr := requester(t, r, network, wiretest.Hex(crcOnly))
	qp, err := cr.Accept(context.Background(), qc)
	require.NoError(t, err)
	p.WantReply("the Reply accepts, with CRCs", crcOnly)
	return p, qp
}

// requester connects to a listener of r, sends a Request that ends with rest, and returns the resulting ConnRequest.
func requester(t testing.TB, r *iwarp.RNIC, network string, rest []byte) (*wiretest.Peer, *iwarp.ConnRequest) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wiretest.Patience)
	defer cancel()
	l, err := r.Listen(ctx, network, wiretest.Local(network), nil)
	require.NoError(t, err)
	defer l.Close()
	p := wiretest.Dial(t, network, l.Addr().String(), rest)
	cr, err := l.Accept(ctx)
	require.NoError(t, err)
	return p, cr
}

// responder plays the responder for a QP that is made by Dial with revision 1.
func responder(t testing.TB, r *iwarp.RNIC, network string, qc *iwarp.QPConfig) (*wiretest.Peer, *iwarp.QP) {
	t.Helper()
	if wiretest.LLP != nil {
		return overLLP(t, r, qc)
	}
	qc.MPA.Revision = 1
	ctx, cancel := context.WithTimeout(context.Background(), wiretest.Patience)
	defer cancel()
	addr, accepted := wiretest.Accept(t, network, wiretest.Hex(crcOnly))
	qp, err := r.Dial(ctx, network, addr, qc)
	require.NoError(t, err)
	p := <-accepted
	require.NotNil(t, p)
	t.Cleanup(func() { _ = p.Conn.Close() })
	return p, qp
}

// overLLP makes a QP over the LLP of the suite, and the Peer at its other end.
func overLLP(t testing.TB, r *iwarp.RNIC, qc *iwarp.QPConfig) (*wiretest.Peer, *iwarp.QP) {
	t.Helper()
	a, b := wiretest.LLP(t)
	qp := iwarp.Establish(t, r, a, qc, nil)
	return wiretest.Over(t, b), qp
}
