package iwarp_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
)

// TestUserDataIsThereWithTheFirstCompletion: before Accept returns.
func TestUserDataIsThereWithTheFirstCompletion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		cq, err := s.rnic.CreateCQ(iwarp.DefaultDepth)
		require.NoError(t, err)
		p, cr := requester(t, s.rnic, "pipe", wiretest.Hex(wiretest.DefaultRequest))
		type session struct{ name string }
		mine := &session{"Ada"}
		qp, err := cr.Accept(testContext(t), &iwarp.QPConfig{
			PD: s.pd, RecvCQ: cq, UserData: mine,
			Setup: func(_ context.Context, qp *iwarp.QP) error {
				require.Same(t, mine, qp.UserData(), "in Setup")
				return qp.PostRecv(iwarp.RecvWR{ID: 1})
			},
		})
		require.NoError(t, err)
		p.Read(len(wiretest.Hex(wiretest.DefaultRequest)))
		p.Send(wiretest.Send(1, 0, ""))
		wc := s.completes(cq, 1)[0]
		require.Same(t, mine, wc.QP.UserData())
		require.NoError(t, qp.Abort())
		require.Same(t, mine, qp.UserData(), "after the end")
	})
	k := newTalk(t, iwarp.QPConfig{}, nil)
	require.Nil(t, k.qp.UserData(), "it was not set")
	require.NoError(t, k.qp.Abort())
}

func TestNoConnectionIsAnError(t *testing.T) {
	s := newSide(t, nil)
	var tcp *net.TCPConn
	for name, c := range map[string]net.Conn{"nil": nil, "typed nil": tcp} {
		_, err := s.rnic.Client(testContext(t), c, &iwarp.QPConfig{PD: s.pd})
		require.EqualError(t, err, "iwarp: client: the net.Conn is nil", name)
		_, err = s.rnic.Client(testContext(t), c, nil)
		require.Error(t, err, name)
		_, err = s.rnic.Server(testContext(t), c, nil)
		require.EqualError(t, err, "iwarp: server: the net.Conn is nil", name)
		_, err = s.rnic.Server(testContext(t), c, &iwarp.ListenConfig{MaxHalfOpen: -1})
		require.Error(t, err, name)
	}
	require.Zero(t, s.rnic.InUse().MaxQP)
}
