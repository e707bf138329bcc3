package iwarp_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// A mockAuth is an Authenticator without keys: its sessions change no frame, and the first message is a number
// of octets. It shows whether a connection meets its duties to a session.
type mockAuth struct {
	first  int // octets of the first message
	peer   iwarp.Peer
	refuse error // of Open and VerifyFirst
	open   atomic.Int64
	closed atomic.Int64

	whenClosed func() // of a session; nil: nothing
}

func (a *mockAuth) Initiate(context.Context, *iwarp.AuthInfo) (iwarp.AuthSession, error) {
	return a.begin()
}

func (a *mockAuth) Respond(context.Context, *iwarp.AuthInfo) (iwarp.AuthSession, error) {
	return a.begin()
}

func (a *mockAuth) begin() (iwarp.AuthSession, error) {
	a.open.Add(1)
	return &mockSession{a}, nil
}

type mockSession struct{ *mockAuth }

func (s *mockSession) Overhead() int                              { return 0 }
func (s *mockSession) Wrap(start, app []byte) ([]byte, error)     { return append(start, app...), nil }
func (s *mockSession) Open(frame []byte, off int) ([]byte, error) { return frame[off:], nil }
func (s *mockSession) RefuseLen(error) int                        { return 0 }
func (s *mockSession) First() ([]byte, error)                     { return make([]byte, s.first), nil }
func (s *mockSession) FirstLen() int                              { return s.first }
func (s *mockSession) VerifyFirst([]byte) error                   { return s.refuse }
func (s *mockSession) Peer() iwarp.Peer                           { return s.peer }

func (s *mockSession) Close() {
	s.closed.Add(1)
	s.open.Add(-1)
	if s.whenClosed != nil {
		s.whenClosed()
	}
}

func (s *mockSession) Refuse(b, app []byte, _ error) ([]byte, error) { return append(b, app...), nil }

func (s *mockSession) Export(string, []byte, int) ([]byte, error) { return nil, errors.ErrUnsupported }

// TestCM_20_LengthOfTheFirstMessage is bounded, before a packet leaves the initiator and before
// anything of it is taken by the responder.
func TestCM_20_LengthOfTheFirstMessage(t *testing.T) {
	for _, n := range []int{-1, rdmap.MaxFirst + 1, 1, rdmap.MaxFirst} {
		bubble(t, func(t *testing.T) {
			client, server, a := newSide(t, nil), newSide(t, nil), &mockAuth{first: n}
			l, err := server.rnic.Listen(t.Context(), "pipe", "", &iwarp.ListenConfig{Auth: a})
			require.NoError(t, err)
			accepted := make(chan error, 1)
			go func() {
				cr, err := l.Accept(testContext(t))
				if err == nil {
					_, err = cr.Accept(testContext(t), &iwarp.QPConfig{PD: server.pd})
				}
				accepted <- err
			}()
			good := 0 < n && n <= rdmap.MaxFirst
			_, err = client.rnic.Dial(t.Context(), "pipe", l.Addr().String(), &iwarp.QPConfig{PD: client.pd, Auth: a})
			if good {
				require.NoError(t, err)
				require.NoError(t, <-accepted)
				return
			}
			require.ErrorContains(t, err, "first message")
			require.Zero(t, a.open.Load())
			require.Empty(t, accepted, "nothing was sent")
			require.Zero(t, client.rnic.InUse().MaxQP)

			_, err = client.rnic.Dial(t.Context(), "pipe", l.Addr().String(), &iwarp.QPConfig{PD: client.pd, Auth: &mockAuth{}})
			if err == nil {
				synctest.Wait()
			}
			require.ErrorContains(t, <-accepted, "first message")
			require.Zero(t, server.rnic.InUse().MaxQP)
			require.Zero(t, a.open.Load())
			require.Empty(t, server.rnic.Events())
		})
	}
}

// A noSessions returns no session.
type noSessions struct{}

func (noSessions) Initiate(context.Context, *iwarp.AuthInfo) (iwarp.AuthSession, error) {
	return nil, nil
}

func (noSessions) Respond(context.Context, *iwarp.AuthInfo) (iwarp.AuthSession, error) {
	return nil, nil
}

// TestAuthenticatorWithoutSessions is an error on both sides, and lets no peer in.
func TestAuthenticatorWithoutSessions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		l, err := s.rnic.Listen(t.Context(), "pipe", "", &iwarp.ListenConfig{Auth: noSessions{}})
		require.NoError(t, err)
		_, err = s.rnic.Dial(t.Context(), "pipe", l.Addr().String(), &iwarp.QPConfig{PD: s.pd, Auth: noSessions{}})
		require.ErrorContains(t, err, "no session")
		p := wiretest.Dial(t, "pipe", l.Addr().String(), wiretest.Hex("50 02 0004 0010 0010"))
		p.WantClosed("without an answer")
		require.Zero(t, s.rnic.InUse().MaxQP)
	})
}

// TestSessionsAreClosedOnce, however a set-up ends.
func TestSessionsAreClosedOnce(t *testing.T) {
	errTest := errors.New("of the test")
	for name, way := range map[string]func(t *testing.T, server *side, l *iwarp.Listener, cr *iwarp.ConnRequest, p *wiretest.Peer){
		"abandoned by Serve": func(t *testing.T, _ *side, l *iwarp.Listener, cr *iwarp.ConnRequest, p *wiretest.Peer) {
			require.NoError(t, cr.Reject(nil))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- l.Serve(ctx, func(*iwarp.ConnRequest) { cancel() }) }()
			wiretest.Dial(t, "pipe", l.Addr().String(), wiretest.Hex("50 02 0004 0010 0010"))
			require.ErrorIs(t, <-done, context.Canceled)
		},
		"rejected": func(t *testing.T, _ *side, _ *iwarp.Listener, cr *iwarp.ConnRequest, _ *wiretest.Peer) {
			require.NoError(t, cr.Reject(nil))
			require.Error(t, cr.Reject(nil))
		},
		"a QPConfig that is wrong": func(t *testing.T, _ *side, _ *iwarp.Listener, cr *iwarp.ConnRequest, _ *wiretest.Peer) {
			_, err := cr.Accept(t.Context(), &iwarp.QPConfig{})
			require.Error(t, err)
		},
		"another Authenticator": func(t *testing.T, s *side, _ *iwarp.Listener, cr *iwarp.ConnRequest, _ *wiretest.Peer) {
			_, err := cr.Accept(t.Context(), &iwarp.QPConfig{PD: s.pd, Auth: new(mockAuth)})
			require.ErrorContains(t, err, "Auth")
		},
		"a Setup that fails": func(t *testing.T, s *side, _ *iwarp.Listener, cr *iwarp.ConnRequest, _ *wiretest.Peer) {
			_, err := cr.Accept(t.Context(), &iwarp.QPConfig{PD: s.pd, Setup: func(context.Context, *iwarp.QP) error { return errTest }})
			require.ErrorIs(t, err, errTest)
		},
		"a peer that has gone": func(t *testing.T, s *side, _ *iwarp.Listener, cr *iwarp.ConnRequest, p *wiretest.Peer) {
			p.Abort()
			_, err := cr.Accept(t.Context(), &iwarp.QPConfig{PD: s.pd})
			require.Error(t, err)
		},
		"a context that has ended": func(t *testing.T, s *side, _ *iwarp.Listener, cr *iwarp.ConnRequest, _ *wiretest.Peer) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := cr.Accept(ctx, &iwarp.QPConfig{PD: s.pd})
			require.Error(t, err)
		},
		"no first message": func(t *testing.T, s *side, _ *iwarp.Listener, cr *iwarp.ConnRequest, _ *wiretest.Peer) {
			_, err := cr.Accept(t.Context(), &iwarp.QPConfig{PD: s.pd})
			require.ErrorIs(t, err, iwarp.ErrAuth)
		},
		"established": func(t *testing.T, s *side, _ *iwarp.Listener, cr *iwarp.ConnRequest, p *wiretest.Peer) {
			p.Send(wiretest.Send(1, 0, "12345678"))
			qp, err := cr.Accept(t.Context(), &iwarp.QPConfig{PD: s.pd})
			require.NoError(t, err)
			peer, known := qp.Peer()
			require.True(t, known)
			require.NoError(t, qp.Abort())
			e := <-s.rnic.Events()
			require.Same(t, qp, e.QP)
			ended, known := e.QP.Peer()
			require.True(t, known, "the session has ended with the QP, and the Event is about this peer")
			require.Equal(t, peer, ended)
			ended, known = cr.Peer()
			require.True(t, known)
			require.Equal(t, peer, ended)
		},
		"the end of the RNIC": func(t *testing.T, s *side, _ *iwarp.Listener, cr *iwarp.ConnRequest, _ *wiretest.Peer) {
			require.NoError(t, s.rnic.Close())
			_, err := cr.Accept(t.Context(), &iwarp.QPConfig{PD: s.pd})
			require.ErrorIs(t, err, net.ErrClosed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				server, a := newSide(t, nil), &mockAuth{first: 8, peer: iwarp.Peer{Kind: 1}}
				l, err := server.rnic.Listen(t.Context(), "pipe", "", &iwarp.ListenConfig{Auth: a})
				require.NoError(t, err)
				p := wiretest.Dial(t, "pipe", l.Addr().String(), wiretest.Hex("50 02 0004 0010 0010"))
				cr, err := l.Accept(testContext(t))
				require.NoError(t, err)
				_, known := cr.Peer()
				require.True(t, known)
				way(t, server, l, cr, p)
				_ = l.Close()
				synctest.Wait()
				require.Positive(t, a.closed.Load())
				require.Zero(t, a.open.Load(), "each session was closed, and none twice")
			})
		})
	}
}

// TestCM_24_AnEndBehindTheFirstMessage does not undo it, whichever of the two Accept sees first.
func TestCM_24_AnEndBehindTheFirstMessage(t *testing.T) {
	for range 100 {
		bubble(t, func(t *testing.T) {
			server, a := newSide(t, nil), &mockAuth{first: 8}
			l, err := server.rnic.Listen(t.Context(), "pipe", "", &iwarp.ListenConfig{Auth: a})
			require.NoError(t, err)
			p := wiretest.Dial(t, "pipe", l.Addr().String(), wiretest.Hex("50 02 0004 0010 0010"))
			p.Send(wiretest.Send(1, 0, "12345678"))
			p.CloseWrite()
			cr, err := l.Accept(testContext(t))
			require.NoError(t, err)
			qp, err := cr.Accept(testContext(t), &iwarp.QPConfig{PD: server.pd})
			require.NoError(t, err)
			<-qp.Done()
		})
	}
}

// TestNoticesOfAPeerThatHasNotProvedItself are neither Events nor lines of the log: such peers could fill both.
func TestNoticesOfAPeerThatHasNotProvedItself(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		server, a := newSide(t, &iwarp.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}), &mockAuth{first: 8}
		l, err := server.rnic.Listen(t.Context(), "pipe", "", &iwarp.ListenConfig{Auth: a})
		require.NoError(t, err)
		wiretest.Dial(t, "pipe", l.Addr().String(), wiretest.Hex("50 02 0004 0010 0010"))
		cr, err := l.Accept(testContext(t))
		require.NoError(t, err)
		_, err = cr.Accept(testContext(t), &iwarp.QPConfig{PD: server.pd, StallWait: time.Second, Setup: func(_ context.Context, qp *iwarp.QP) error {
			return qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend})
		}})
		require.ErrorIs(t, err, iwarp.ErrAuth, "nothing has come in the time of ListenConfig.SetupTimeout")
		require.Empty(t, server.rnic.Events())
		require.Empty(t, log.String())
	})
}

// TestTerminateBehindAnotherMessageIsNoRefusal of our first message, even if one read has brought both.
func TestTerminateBehindAnotherMessageIsNoRefusal(t *testing.T) {
	for name, before := range map[string][][]byte{"alone": nil, "behind a Write": {wiretest.Write(0, 0, "")}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSide(t, nil)
				require.NoError(t, s.dialTo(iwarp.QPConfig{Auth: &mockAuth{first: 8}}, func(p *wiretest.Peer) {
					p.WantRequest("50 02 0004 0010 0010")
					p.Reply("50 02 0004 0010 0010")
					p.WantSegment("the first message", "41 43 00000000 00000000 00000001 00000000", make([]byte, 8)...)
					p.Send(append(before, wiretest.Terminate(transport.RDMAPStreamCatastrophic, wiretest.NoHeader, nil))...)
					p.CloseWrite()
				}))
				<-s.qp.Done()
				require.True(t, s.qp.Terminated().Remote)
				require.Equal(t, before == nil, errors.Is(s.qp.Err(), iwarp.ErrAuth))
			})
		})
	}
}

// TestEventOfAQPThatEndsAsTheRNICCloses is reported, whatever part of the QP has been released already.
func TestEventOfAQPThatEndsAsTheRNICCloses(t *testing.T) {
	server, a := newSide(t, nil), &mockAuth{peer: iwarp.Peer{Kind: 1}}
	l, err := server.rnic.Listen(t.Context(), "tcp", "127.0.0.1:0", &iwarp.ListenConfig{Auth: a})
	require.NoError(t, err)
	wiretest.Dial(t, "tcp", l.Addr().String(), wiretest.Hex("50 02 0004 0010 0010"))
	cr, err := l.Accept(testContext(t))
	require.NoError(t, err)
	qp, err := cr.Accept(testContext(t), &iwarp.QPConfig{PD: server.pd})
	require.NoError(t, err)
	require.NoError(t, l.Close())
	for end := time.Now().Add(time.Second); server.rnic.Tasks() > 0 && time.Now().Before(end); { // Abort then ends the QP in this goroutine
		time.Sleep(time.Millisecond)
	}
	events, closed := server.rnic.Events(), make(chan error, 1)
	a.whenClosed = func() {
		go func() { closed <- server.rnic.Close() }()
		select { // Close does not know of the QP any more, or waits for it
		case err := <-closed:
			closed <- err
		case <-time.After(50 * time.Millisecond):
		}
	}
	require.NoError(t, qp.Abort())
	require.NoError(t, <-closed)
	e, open := <-events
	require.True(t, open, "the Event was lost")
	require.Equal(t, iwarp.EventAborted, e.Kind)
	require.Same(t, qp, e.QP)
	<-qp.Done()
}

// TestAdmitAndAuthOfAListener are asked about each connection.
func TestAdmitAndAuthOfAListener(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server, a := newSide(t, nil), &mockAuth{first: 8}
		refused := atomic.Bool{}
		l, err := server.rnic.Listen(t.Context(), "pipe", "", &iwarp.ListenConfig{Auth: a, Admit: func(net.Addr) error {
			if refused.Load() {
				return errors.New("not you")
			}
			return nil
		}})
		require.NoError(t, err)
		wiretest.Dial(t, "pipe", l.Addr().String(), wiretest.Hex("50 02 0004 0010 0010"))
		cr, err := l.Accept(testContext(t))
		require.NoError(t, err)
		require.EqualValues(t, 1, a.open.Load())
		require.NoError(t, cr.Reject(nil))
		refused.Store(true)
		began := time.Now()
		c, err := transport.Dial(t.Context(), "pipe", l.Addr().String(), transport.Options{})
		require.NoError(t, err)
		p := &wiretest.Peer{TB: t, Conn: c} // says nothing: it may be closed already
		p.WantClosed("it is not admitted")
		require.Zero(t, time.Since(began))
		require.Zero(t, a.open.Load())
	})
}

// A slowAuth spends all the time that it is given on a Request.
type slowAuth struct{ *mockAuth }

func (a slowAuth) Respond(ctx context.Context, _ *iwarp.AuthInfo) (iwarp.AuthSession, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// TestCM_41_AuthenticationIsBounded by ListenConfig.SetupTimeout, over each network.
func TestCM_41_AuthenticationIsBounded(t *testing.T) {
	for _, network := range []string{"tcp", "sctp+udp"} {
		client, server := newSide(t, nil), newSide(t, nil)
		l, err := server.rnic.Listen(testContext(t), network, wiretest.Local(network), &iwarp.ListenConfig{
			SetupTimeout: 50 * time.Millisecond, Auth: slowAuth{new(mockAuth)},
		})
		require.NoError(t, err)
		_, err = client.rnic.Dial(testContext(t), network, l.Addr().String(), &iwarp.QPConfig{PD: client.pd, Auth: new(mockAuth)})
		require.Error(t, err)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "the client has waited for as long as it could over %s", network)
		require.NoError(t, l.Close())
	}
}

// TestSetupThatPanics leaves no QP, session, connection, or place among the connections of a listener, if the program
// goes on, as a server may that recovers from the panics of its handlers.
func TestSetupThatPanics(t *testing.T) {
	for _, network := range []string{"tcp", "sctp+udp"} {
		s, a := newSide(t, nil), new(mockAuth)
		panics := &iwarp.QPConfig{PD: s.pd, Auth: a, Setup: func(context.Context, *iwarp.QP) error { panic("of the program") }}
		l, err := s.rnic.Listen(t.Context(), network, wiretest.Local(network), &iwarp.ListenConfig{Auth: a, MaxHalfOpen: 1})
		require.NoError(t, err)
		for range 3 { // each needs the place of the one before
			dialled := make(chan error, 1)
			go func() {
				_, err := s.rnic.Dial(testContext(t), network, l.Addr().String(), &iwarp.QPConfig{PD: s.pd, Auth: a})
				dialled <- err
			}()
			cr, err := l.Accept(testContext(t))
			require.NoError(t, err)
			require.PanicsWithValue(t, "of the program", func() { _, _ = cr.Accept(t.Context(), panics) })
			require.ErrorIs(t, <-dialled, iwarp.ErrRejected)
		}
		require.PanicsWithValue(t, "of the program", func() { _, _ = s.rnic.Dial(testContext(t), network, l.Addr().String(), panics) })
		require.Zero(t, s.rnic.InUse().MaxQP)
		require.Zero(t, a.open.Load())
		require.NoError(t, l.Close())
		require.Eventually(t, func() bool { return s.rnic.HalfOpen() == 0 }, 5*time.Second, time.Millisecond)
	}
}

// TestTraceThatPanics leaves no QP and no connection, in whichever stage it does.
func TestTraceThatPanics(t *testing.T) {
	for stage := iwarp.StageRequest; stage <= iwarp.StageConfirm; stage++ {
		s := newSide(t, nil)
		ours, theirs := net.Pipe()
		answered := make(chan error, 1)
		go func() {
			cr, err := s.rnic.Server(testContext(t), theirs, nil)
			if err == nil {
				var qp *iwarp.QP
				if qp, err = cr.Accept(testContext(t), &iwarp.QPConfig{PD: s.pd}); err == nil {
					<-qp.Done()
				}
			}
			answered <- err
		}()
		c := &closingConn{Conn: ours}
		qc := &iwarp.QPConfig{PD: s.pd, SetupTrace: &iwarp.SetupTrace{Enter: func(_ context.Context, at iwarp.SetupStage) error {
			if at == stage {
				panic("of the program")
			}
			return nil
		}}}
		require.PanicsWithValue(t, "of the program", func() { _, _ = s.rnic.Client(testContext(t), c, qc) })
		require.True(t, c.closed.Load(), "the stage %v", stage)
		if err := <-answered; stage != iwarp.StageConfirm { // at which the responder may have its QP, and sees an orderly end
			require.Error(t, err)
		}
		require.Zero(t, s.rnic.InUse().MaxQP)
	}
}

// A closingConn records whether it was closed.
type closingConn struct {
	net.Conn
	closed atomic.Bool
}

func (c *closingConn) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// A waitingAuth finds no session until its context ends.
type waitingAuth struct{ begun chan struct{} }

func (a waitingAuth) Initiate(ctx context.Context, _ *iwarp.AuthInfo) (iwarp.AuthSession, error) {
	close(a.begun)
	<-ctx.Done()
	return nil, ctx.Err()
}

func (a waitingAuth) Respond(ctx context.Context, info *iwarp.AuthInfo) (iwarp.AuthSession, error) {
	return a.Initiate(ctx, info)
}

// TestEndOfTheRNICEndsAnAuthentication, as it ends the other parts of a set-up.
func TestEndOfTheRNICEndsAnAuthentication(t *testing.T) {
	for how, end := range map[string]func(r *iwarp.RNIC) error{
		"Close":    (*iwarp.RNIC).Close,
		"Shutdown": func(r *iwarp.RNIC) error { return r.Shutdown(context.Background()) },
	} {
		for call, begin := range map[string]func(ctx context.Context, s *side, a waitingAuth) error{
			"Dial": func(ctx context.Context, s *side, a waitingAuth) error {
				_, err := s.rnic.Dial(ctx, "pipe", "nowhere", &iwarp.QPConfig{PD: s.pd, Auth: a})
				return err
			},
			"Client": func(ctx context.Context, s *side, a waitingAuth) error {
				c, _ := transport.Pipe(transport.PipeOptions{})
				_, err := s.rnic.Client(ctx, c, &iwarp.QPConfig{PD: s.pd, Auth: a})
				return err
			},
			"Server": func(ctx context.Context, s *side, a waitingAuth) error {
				c, peer := transport.Pipe(transport.PipeOptions{})
				go func() { _, _ = peer.Write(append([]byte("MPA ID Req Frame"), wiretest.Hex("50 02 0004 0010 0010")...)) }()
				_, err := s.rnic.Server(ctx, c, &iwarp.ListenConfig{Auth: a, SetupTimeout: time.Hour})
				return err
			},
			"a stage of Dial": func(ctx context.Context, s *side, a waitingAuth) error {
				enter := func(ctx context.Context, _ iwarp.SetupStage) error {
					_, err := a.Initiate(ctx, nil)
					return err
				}
				_, err := s.rnic.Dial(ctx, "pipe", "nowhere", &iwarp.QPConfig{PD: s.pd, SetupTrace: &iwarp.SetupTrace{Enter: enter}})
				return err
			},
		} {
			t.Run(how+" "+call, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					s, a := newSide(t, nil), waitingAuth{make(chan struct{})}
					ended := make(chan error, 1)
					go func() { ended <- begin(testContext(t), s, a) }()
					<-a.begun
					start := time.Now()
					require.NoError(t, end(s.rnic))
					require.ErrorIs(t, <-ended, net.ErrClosed)
					require.Zero(t, time.Since(start))
					require.Zero(t, s.rnic.InUse().MaxQP)
				})
			})
		}
	}
}

// TestCM_44_OctetsBehindTheFirstMessage are those of a connection without an Authenticator, except that the numbers of
// Sends begin after the number of the first message.
func TestCM_44_OctetsBehindTheFirstMessage(t *testing.T) {
	const first = 5
	for _, auth := range []iwarp.Authenticator{nil, &mockAuth{first: first}} {
		bubble(t, func(t *testing.T) {
			k := newTalk(t, iwarp.QPConfig{Auth: auth}, nil)
			msn, next := "00000001", "00000002"
			if auth != nil {
				k.p.WantSegment("the first message", "41 43 00000000 00000000 00000001 00000000", make([]byte, first)...)
				msn, next = "00000002", "00000003"
			}
			fillRandom(k.mem[:20])
			there := iwarp.RemoteBuffer{STag: 0x11223344, TO: 0x1000, Len: 20}
			k.posts(
				iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: k.at(0, 20), Remote: there},
				iwarp.SendWR{Op: iwarp.OpRDMARead, Local: k.at(100, 20), Remote: there},
				iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Solicited, Local: k.at(0, 20)},
				iwarp.SendWR{Op: iwarp.OpSendInvalidate, Local: k.at(0, 1), Invalidate: 0x11223344},
				iwarp.SendWR{Op: iwarp.OpFetchAdd, Remote: there.Slice(0, 8), Add: 3},
			)
			k.p.WantSegment("a Write", "c1 40 11223344 0000000000001000", k.mem[:20]...)
			sink := rdmap.RemoteAddr{STag: k.mr.STag(), TO: 100}
			k.p.WantSegment("a Read Request", "41 41 00000000 00000001 00000001 00000000",
				rdmap.ReadRequest{Sink: sink, Size: 20, Src: rdmap.RemoteAddr{STag: there.STag, TO: there.TO}}.Append(nil)...)
			k.p.WantSegment("a Send", "41 45 00000000 00000000 "+msn+" 00000000", k.mem[:20]...)
			k.p.WantSegment("the next Send", "41 44 11223344 00000000 "+next+" 00000000", k.mem[0])
			k.p.WantSegment("an Atomic Request", "41 4a 00000000 00000001 00000002 00000000", rdmap.AtomicRequest{
				Op: rdmap.FetchAdd, ID: 2, At: rdmap.RemoteAddr{STag: there.STag, TO: there.TO}, Data: 3,
			}.Append(nil)...)
		})
	}
}
