package iwarp_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// A side is one end of a test connection, with an RNIC of its own.
type side struct {
	*testing.T
	rnic *iwarp.RNIC
	pd   *iwarp.PD
	qp   *iwarp.QP
}

func newSide(t *testing.T, cfg *iwarp.Config) *side {
	r, err := iwarp.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(), "the RNIC closes") })
	pd, err := r.AllocPD()
	require.NoError(t, err)
	return &side{T: t, rnic: r, pd: pd}
}

// register makes n octets of memory known.
func (s *side) register(n int, access stag.Access, opts *iwarp.MROptions) ([]byte, *iwarp.MR) {
	s.Helper()
	b := make([]byte, n)
	mr, err := s.pd.RegisterMR(b, access, opts)
	require.NoError(s, err)
	return b, mr
}

// A pairConfig is how connect makes a pair.
type pairConfig struct {
	network          string
	client, server   iwarp.QPConfig
	clientR, serverR *iwarp.Config
	listen           *iwarp.ListenConfig
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// connect makes two RNICs and a connection between them.
func connect(t *testing.T, pc pairConfig) (client, server *side) {
	t.Helper()
	client, server = newSide(t, pc.clientR), newSide(t, pc.serverR)
	client.connect(server, pc)
	return client, server
}

// connect adds one connection from s to server.
func (s *side) connect(server *side, pc pairConfig) {
	s.Helper()
	if wiretest.LLP != nil {
		a, b := wiretest.LLP(s)
		pc.client.PD, pc.server.PD = s.pd, server.pd
		s.qp, server.qp = iwarp.ConnectOver(s, a, b, s.rnic, &pc.client, server.rnic, &pc.server)
		return
	}
	ctx := testContext(s.T)
	network := cmp.Or(pc.network, "tcp")
	l, err := server.rnic.Listen(ctx, network, wiretest.Local(network), pc.listen)
	require.NoError(s, err)
	defer l.Close()
	accepted := make(chan error, 1)
	go func() {
		cr, err := l.Accept(ctx)
		if err == nil {
			pc.server.PD = server.pd
			server.qp, err = cr.Accept(ctx, &pc.server)
		}
		accepted <- err
	}()
	pc.client.PD = s.pd
	s.qp, err = s.rnic.Dial(ctx, network, l.Addr().String(), &pc.client)
	require.NoError(s, err)
	require.NoError(s, <-accepted)
}
