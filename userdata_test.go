package iwarp

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUserDataIsThereWithTheFirstCompletion: before Accept returns.
func TestUserDataIsThereWithTheFirstCompletion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		cq, err := s.rnic.CreateCQ(DefaultDepth)
		require.NoError(t, err)
		p, cr := requester(t, s.rnic, "pipe", hx(defaultRequest))
		type session struct{ name string }
		mine := &session{"Ada"}
		qp, err := cr.Accept(testContext(t), &QPConfig{
			PD: s.pd, RecvCQ: cq, UserData: mine,
			Setup: func(_ context.Context, qp *QP) error {
				require.Same(t, mine, qp.UserData(), "in Setup")
				return qp.PostRecv(RecvWR{ID: 1})
			},
		})
		require.NoError(t, err)
		p.reads(len(hx(defaultRequest)))
		p.writes(fpdu(send(1, 0, "")))
		wc := s.completes(cq, 1)[0]
		require.Same(t, mine, wc.QP.UserData())
		require.NoError(t, qp.Abort())
		require.Same(t, mine, qp.UserData(), "after the end")
	})
	k := newTalk(t, QPConfig{}, nil)
	require.Nil(t, k.qp.UserData(), "nobody set it")
	require.NoError(t, k.qp.Abort())
}

func TestNoConnectionIsAnError(t *testing.T) {
	s := newSide(t, nil)
	var tcp *net.TCPConn
	for name, c := range map[string]net.Conn{"nil": nil, "typed nil": tcp} {
		_, err := s.rnic.Client(testContext(t), c, &QPConfig{PD: s.pd})
		require.EqualError(t, err, "iwarp: client: the net.Conn is nil", name)
		_, err = s.rnic.Client(testContext(t), c, nil)
		require.Error(t, err, name)
		_, err = s.rnic.Server(testContext(t), c, nil)
		require.EqualError(t, err, "iwarp: server: the net.Conn is nil", name)
		_, err = s.rnic.Server(testContext(t), c, &ListenConfig{MaxHalfOpen: -1})
		require.Error(t, err, name)
	}
	require.Zero(t, s.rnic.InUse().MaxQP)
}
