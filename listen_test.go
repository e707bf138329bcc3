package iwarp_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/transport"
)

// listens makes a listener on the pipe.
func (s *side) listens(lc *iwarp.ListenConfig) *iwarp.Listener {
	s.Helper()
	l, err := s.rnic.Listen(testContext(s.T), "pipe", "", lc)
	require.NoError(s, err)
	s.Cleanup(func() { require.NoError(s, l.Close()) })
	return l
}

// calls connects to l and sends octets; it is a peer that plays an initiator.
func calls(t *testing.T, l *iwarp.Listener, octets []byte) *wiretest.Peer {
	t.Helper()
	c, err := transport.Dial(testContext(t), "pipe", l.Addr().String(), transport.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	p := &wiretest.Peer{TB: t, Conn: c}
	p.Write(octets)
	return p
}

func request(rest string) []byte { return append([]byte(wiretest.RequestKey), wiretest.Hex(rest)...) }

func TestListenConfigIsChecked(t *testing.T) {
	s := newSide(t, &iwarp.Config{Limits: iwarp.Limits{MaxHalfOpen: 4}})
	for _, lc := range []iwarp.ListenConfig{{SetupTimeout: -1}, {ProgressTimeout: -1}, {MaxHalfOpen: -1}, {MaxHalfOpen: 5}} {
		_, err := s.rnic.Listen(testContext(t), "pipe", "", &lc)
		require.Error(t, err, "%+v", lc)
		a, b := net.Pipe()
		_, err = s.rnic.Server(testContext(t), a, &lc)
		require.Error(t, err)
		_, err = b.Read(make([]byte, 1))
		require.Error(t, err, "the connection is closed")
	}
	_, err := s.rnic.Listen(testContext(t), "carrier pigeon", "", nil)
	require.Error(t, err)
}

func TestAcceptWithABadConfiguration(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, &iwarp.Config{Limits: iwarp.Limits{MaxIRD: 4, MaxORD: 4, MaxQueueDepth: 8, MaxQP: 1}})
		pd, err := s.rnic.AllocPD()
		require.NoError(t, err)
		require.NoError(t, pd.Close())
		for _, qc := range []*iwarp.QPConfig{
			nil,
			{},
			{PD: pd},
			{PD: s.pd, IRD: 5},
			{PD: s.pd, ORD: 5},
			{PD: s.pd, IRD: -2},
			{PD: s.pd, ORD: -2},
			{PD: s.pd, SendDepth: 9},
			{PD: s.pd, RecvDepth: -1},
		} {
			p, cr := requester(t, s.rnic, "pipe", wiretest.Hex("40 01 0000"))
			_, err := cr.Accept(testContext(t), qc)
			require.Error(t, err, "%+v", qc)
			require.NotZero(t, p.Read(20)[16]&0x20, "%+v: the Reply rejects", qc)
			p.WantEOF("the connection is closed")
		}
		p, first := requester(t, s.rnic, "pipe", wiretest.Hex("40 01 0000"))
		qp, err := first.Accept(testContext(t), &iwarp.QPConfig{PD: s.pd})
		require.NoError(t, err)
		require.Equal(t, []int{4, 4}, []int{qp.IRD(), qp.ORD()}, "defaults stay within the limits")
		p.Read(20)
		p, second := requester(t, s.rnic, "pipe", wiretest.Hex("40 01 0000"))
		_, err = second.Accept(testContext(t), &iwarp.QPConfig{PD: s.pd})
		require.ErrorIs(t, err, iwarp.ErrLimit)
		require.Equal(t, wiretest.Hex("4d504120 49442052 65702046 72616d65 60 01 0000"), p.Read(20), "the initiator is told by a Reply that rejects")
		p.WantEOF("the connection is closed")
		require.Error(t, s.pd.Close(), "a PD with a QP cannot be closed")
		require.NoError(t, qp.Abort())
		require.NoError(t, s.pd.Close())
		require.Zero(t, s.rnic.HalfOpen())
	})
}

// TestMPA_64_ResponderThatCannotGoOnRejects: over each network, the initiator learns that, and does not take this side
// for a peer that knows only RFC 5044, to which it would connect again without a negotiation.
func TestMPA_64_ResponderThatCannotGoOnRejects(t *testing.T) {
	errTest := errors.New("of the test")
	for name, answer := range map[string]func(s *side, cr *iwarp.ConnRequest){
		"Setup fails": func(s *side, cr *iwarp.ConnRequest) {
			_, err := cr.Accept(testContext(s.T), &iwarp.QPConfig{PD: s.pd, Setup: func(context.Context, *iwarp.QP) error { return errTest }})
			require.ErrorIs(s, err, errTest)
		},
		"the context ends in Setup": func(s *side, cr *iwarp.ConnRequest) {
			ctx, cancel := context.WithCancelCause(testContext(s.T))
			_, err := cr.Accept(ctx, &iwarp.QPConfig{PD: s.pd, Setup: func(context.Context, *iwarp.QP) error { cancel(errTest); return nil }})
			require.ErrorIs(s, err, errTest)
		},
		"the configuration is wrong": func(s *side, cr *iwarp.ConnRequest) {
			_, err := cr.Accept(testContext(s.T), nil)
			require.Error(s, err)
		},
		"there are too much private data": func(s *side, cr *iwarp.ConnRequest) {
			_, err := cr.Accept(testContext(s.T), &iwarp.QPConfig{PD: s.pd, PrivateData: make([]byte, 509)})
			require.ErrorContains(s, err, "509 octets of private data")
		},
		"there is no answer": func(*side, *iwarp.ConnRequest) {},
	} {
		for _, network := range []string{"tcp", "sctp+udp"} {
			t.Run(name+" over "+network, func(t *testing.T) {
				client, server := newSide(t, nil), newSide(t, nil)
				l, err := server.rnic.Listen(testContext(t), network, wiretest.Local(network), nil)
				require.NoError(t, err)
				requests := make(chan struct{}, 2)
				served := make(chan struct{})
				go func() {
					defer close(served)
					_ = l.Serve(t.Context(), func(cr *iwarp.ConnRequest) { requests <- struct{}{}; answer(server, cr) })
				}()
				_, err = client.rnic.Dial(testContext(t), network, l.Addr().String(), &iwarp.QPConfig{PD: client.pd})
				require.ErrorIs(t, err, iwarp.ErrRejected)
				require.Len(t, requests, 1)
				require.NoError(t, l.Close())
				<-served
			})
		}
	}
}

// TestRNICCloseDropsWhatWaits: Close drops unanswered requests.
func TestRNICCloseDropsWhatWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		l := s.listens(nil)
		a, b := calls(t, l, request("40 01 0000")), calls(t, l, request("40 01 0000"))
		cr, err := l.Accept(testContext(t))
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, s.rnic.Close())
		a.WantEOF("closed")
		b.WantEOF("closed")
		_, err = cr.Accept(testContext(t), &iwarp.QPConfig{PD: s.pd})
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = l.Accept(testContext(t))
		require.ErrorIs(t, err, net.ErrClosed)
	})
}
