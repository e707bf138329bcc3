package iwarp_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/selfsigned"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/transport"
)

// traced returns a trace that records its calls, and in which the entry of the stage refused fails.
func traced(refused iwarp.SetupStage, why error) (*iwarp.SetupTrace, *[]string) {
	told := new([]string)
	return &iwarp.SetupTrace{
		Enter: func(_ context.Context, s iwarp.SetupStage) error {
			*told = append(*told, "enter "+s.String())
			if s == refused {
				return why
			}
			return nil
		},
		Leave: func(s iwarp.SetupStage, err error) {
			if err != nil {
				*told = append(*told, fmt.Sprintf("%v fails", s))
				return
			}
			*told = append(*told, "leave "+s.String())
		},
	}, told
}

// TestCM_45_StagesOfASetUpFollowOneAnother: over each network and with TLS.
func TestCM_45_StagesOfASetUpFollowOneAnother(t *testing.T) {
	cert, roots := selfsigned.New("iwarp.test")
	serverTLS := &tls.Config{Certificates: []tls.Certificate{cert}}
	clientTLS := &tls.Config{RootCAs: roots, ServerName: "iwarp.test"}
	for _, c := range []struct {
		network string
		tls     *tls.Config
		stages  []iwarp.SetupStage
	}{
		{"tcp", nil, []iwarp.SetupStage{iwarp.StageQP, iwarp.StageDial, iwarp.StageRequest, iwarp.StageReply, iwarp.StageConfirm, iwarp.StageReady}},
		{"tcp", clientTLS, []iwarp.SetupStage{
			iwarp.StageQP, iwarp.StageDial, iwarp.StageSecure, iwarp.StageRequest, iwarp.StageReply, iwarp.StageConfirm, iwarp.StageReady,
		}},
		{"sctp+udp", nil, []iwarp.SetupStage{iwarp.StageQP, iwarp.StageDial, iwarp.StageRequest, iwarp.StageReply, iwarp.StageConfirm, iwarp.StageReady}},
	} {
		trace, told := traced(noStage, nil)
		pc := pairConfig{network: c.network, client: iwarp.QPConfig{SetupTrace: trace, TLS: c.tls}}
		if c.tls != nil {
			pc.listen = &iwarp.ListenConfig{TLS: serverTLS}
		}
		connect(t, pc)
		var want []string
		for _, s := range c.stages {
			want = append(want, "enter "+s.String(), "leave "+s.String())
		}
		require.Equal(t, want, *told)
	}
}

const noStage = ^iwarp.SetupStage(0)

// TestCM_45_ErrorOfAStageEndsTheSetUp: all its resources are given back.
func TestCM_45_ErrorOfAStageEndsTheSetUp(t *testing.T) {
	full := errors.New("the stage is full")
	for s := iwarp.StageQP; s <= iwarp.StageReady; s++ {
		if s == iwarp.StageSecure {
			continue
		}
		client, server := newSide(t, nil), newSide(t, nil)
		l := server.listens(nil)
		go func() {
			if cr, err := l.Accept(testContext(t)); err == nil {
				_, _ = cr.Accept(testContext(t), &iwarp.QPConfig{PD: server.pd})
			}
		}()
		trace, told := traced(s, full)
		_, err := client.rnic.Dial(testContext(t), "pipe", l.Addr().String(), &iwarp.QPConfig{PD: client.pd, SetupTrace: trace})
		require.ErrorIs(t, err, full)
		require.Equal(t, "enter "+s.String(), (*told)[len(*told)-1], "what was not entered is not left")
		client.waitsUntilIdle()
	}
}

// TestStageOfARejectionIsToldOfIt: it gets the error that Dial returns.
func TestStageOfARejectionIsToldOfIt(t *testing.T) {
	client, server := newSide(t, nil), newSide(t, nil)
	l := server.listens(nil)
	go func() {
		if cr, err := l.Accept(testContext(t)); err == nil {
			_ = cr.Reject([]byte("no"))
		}
	}()
	var told *iwarp.RejectError
	trace := &iwarp.SetupTrace{Leave: func(s iwarp.SetupStage, err error) {
		if errors.As(err, &told) {
			require.Equal(t, iwarp.StageReply, s)
		}
	}}
	_, err := client.rnic.Dial(testContext(t), "pipe", l.Addr().String(), &iwarp.QPConfig{PD: client.pd, SetupTrace: trace})
	require.ErrorIs(t, err, iwarp.ErrRejected)
	require.NotNil(t, told)
	require.Equal(t, "no", string(told.PrivateData))
	client.waitsUntilIdle()
}

// TestCM_45_StageOfAnAttemptThatIsRepeated: Leave gets the error of that attempt.
func TestCM_45_StageOfAnAttemptThatIsRepeated(t *testing.T) {
	client := newSide(t, nil)
	hangsUp := func(p *wiretest.Peer) { p.Read(20); p.Close() }
	trace, told := traced(noStage, nil)
	_, err := client.rnic.Dial(testContext(t), "pipe", wiretest.Serve(t, hangsUp, hangsUp), &iwarp.QPConfig{PD: client.pd, SetupTrace: trace})
	require.Error(t, err)
	attempt := []string{"enter dial", "leave dial", "enter request", "leave request", "enter reply", "reply fails"}
	require.Equal(t, append(append([]string{"enter QP", "leave QP"}, attempt...), attempt...), *told)
}

// waitsUntilIdle waits until no QP is left.
func (s *side) waitsUntilIdle() {
	s.Helper()
	require.Eventually(s, func() bool { return s.rnic.InUse().MaxQP == 0 }, 5*time.Second, time.Millisecond)
}

// TestClientKeepsARejectedConnectionAsTheRNICCloses: the peer's answer decides whether the caller keeps the connection.
func TestClientKeepsARejectedConnectionAsTheRNICCloses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		a, b := transport.Pipe(transport.PipeOptions{})
		p := &wiretest.Peer{TB: t, Conn: b}
		go func() {
			p.WantRequest(wiretest.DefaultRequest)
			p.Reply("60 02 0002", []byte("no")...)
		}()
		leave := func(stage iwarp.SetupStage, _ error) {
			if stage == iwarp.StageReply {
				go func() { _ = s.rnic.Close() }()
				synctest.Wait()
			}
		}
		_, err := s.rnic.Client(testContext(t), a, &iwarp.QPConfig{PD: s.pd, SetupTrace: &iwarp.SetupTrace{Leave: leave}})
		require.ErrorIs(t, err, iwarp.ErrRejected)
		go func() { _, _ = a.Write([]byte("still here")) }()
		p.WantOctets("the connection is still open", []byte("still here"))
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	})
}

// A slowConn takes a moment to close.
type slowConn struct {
	net.Conn
	closed *atomic.Bool
}

func (c slowConn) Close() error {
	time.Sleep(time.Millisecond)
	defer c.closed.Store(true)
	return c.Conn.Close()
}

// TestClientThatIsNotReadyHasEnded: when it returns, it has ended, and so has its connection.
func TestClientThatIsNotReadyHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, server := newSide(t, nil), newSide(t, nil)
		a, b := transport.Pipe(transport.PipeOptions{})
		go func() {
			if cr, err := server.rnic.Server(testContext(t), b, nil); err == nil {
				_, _ = cr.Accept(testContext(t), &iwarp.QPConfig{PD: server.pd})
			}
		}()
		c := slowConn{a, new(atomic.Bool)}
		errNotReady := errors.New("not ready")
		enter := func(_ context.Context, stage iwarp.SetupStage) error {
			if stage == iwarp.StageReady {
				return errNotReady
			}
			return nil
		}
		_, err := client.rnic.Client(testContext(t), c, &iwarp.QPConfig{PD: client.pd, SetupTrace: &iwarp.SetupTrace{Enter: enter}})
		require.ErrorIs(t, err, errNotReady)
		require.True(t, c.closed.Load())
		require.Zero(t, client.rnic.InUse().MaxQP)
	})
}
