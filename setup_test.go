package iwarp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// peers accepts connections on the pipe and plays one script for each, in turn. A
// connection that comes when the scripts are used up fails the test.
func peers(t *testing.T, scripts ...func(p *peer)) (addr string) {
	t.Helper()
	l, err := transport.Listen(context.Background(), "pipe", "", transport.Options{})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if i >= len(scripts) {
				t.Error("one connection too many")
				_ = c.Close()
				continue
			}
			scripts[i](&peer{TB: t, c: c})
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

// wantRequest waits for a Request whose header ends with rest and private data.
func (p *peer) wantRequest(rest string, private ...byte) {
	p.Helper()
	p.wantOctets("the Request", append(append([]byte(requestKey), hx(rest)...), private...))
}

// replies sends a Reply that ends with rest.
func (p *peer) replies(rest string, private ...byte) {
	p.Helper()
	p.writes(append(append([]byte(replyKey), hx(rest)...), private...))
}

// defaultRequest is what follows the key: CRCs and enhanced data, revision 2, A, C
// and D set, depths of 16.
const defaultRequest = "50 02 0004 8010 c010"

func TestMPA_24_61_RequestByDefault(t *testing.T) {
	for name, c := range map[string]struct {
		qc   QPConfig
		want string
	}{
		"default":          {QPConfig{}, defaultRequest},
		"no Reads":         {QPConfig{IRD: -1, ORD: -1}, "50 02 0004 8000 8000"},
		"other depths":     {QPConfig{IRD: 5, ORD: 7}, "50 02 0004 8005 c007"},
		"no CRC, Markers":  {QPConfig{MPA: MPAOptions{NoCRC: true, Markers: true}}, "90 02 0004 8010 c010"},
		"revision 1":       {QPConfig{MPA: MPAOptions{Revision: 1}}, "40 01 0000"},
		"private data":     {QPConfig{PrivateData: []byte("hi")}, "50 02 0006 8010 c010 6869"},
		"private, revis 1": {QPConfig{PrivateData: []byte("hi"), MPA: MPAOptions{Revision: 1}}, "40 01 0002 6869"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSide(t, nil)
				c.qc.PD = s.pd
				_, err := s.rnic.Dial(testContext(t), "pipe", peers(t, func(p *peer) {
					p.wantRequest(c.want)
					p.replies("60 01 0000")
					p.wantEnd("Dial closes what is rejected")
				}), &c.qc)
				require.ErrorIs(t, err, ErrRejected)
				require.Zero(t, s.rnic.used.qp, "nothing is left of it")
				require.Zero(t, s.rnic.setups.Pending())
			})
		})
	}
}

func TestPrivateDataGoesBothWays(t *testing.T) {
	for _, n := range []int{0, 1, 248, 508} {
		bubble(t, func(t *testing.T) {
			ask, answer := bytes.Repeat([]byte{1}, n), bytes.Repeat([]byte{2}, n)
			large := MPAOptions{LargePrivateData: n > 248}
			client, server := newSide(t, nil), newSide(t, nil)
			client.meets(server, QPConfig{PrivateData: ask, MPA: large}, func(cr *ConnRequest) QPConfig {
				require.True(t, bytes.Equal(ask, cr.PrivateData()))
				require.Equal(t, []int{16, 16}, []int{cr.IRD(), cr.ORD()}, "the depths of the initiator can be seen")
				require.NotNil(t, cr.RemoteAddr())
				require.NotNil(t, cr.LocalAddr())
				return QPConfig{PrivateData: answer, MPA: large}
			})
			require.True(t, bytes.Equal(ask, server.qp.PrivateData()))
			require.True(t, bytes.Equal(answer, client.qp.PrivateData()))
		})
	}
}

// meets connects s to server over the pipe; answer says how the request is accepted.
func (s *side) meets(server *side, qc QPConfig, answer func(*ConnRequest) QPConfig) {
	s.Helper()
	ctx := testContext(s.T)
	l, err := server.rnic.Listen(ctx, "pipe", "", nil)
	require.NoError(s, err)
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		cr, err := l.Accept(ctx)
		if err == nil {
			sc := answer(cr)
			sc.PD = server.pd
			server.qp, err = cr.Accept(ctx, &sc)
		}
		done <- err
	}()
	qc.PD = s.pd
	s.qp, err = s.rnic.Dial(ctx, "pipe", l.Addr().String(), &qc)
	require.NoError(s, err)
	require.NoError(s, <-done)
}

func TestTooMuchPrivateDataIsRefusedBeforeAnythingIsSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		for n, o := range map[int]MPAOptions{249: {}, 509: {LargePrivateData: true}} {
			qc := &QPConfig{PD: s.pd, PrivateData: make([]byte, n), MPA: o, Setup: func(context.Context, *QP) error {
				t.Fatal("Setup is not called")
				return nil
			}}
			for _, network := range []string{"pipe", "tcp"} {
				_, err := s.rnic.Dial(testContext(t), network, "127.0.0.1:1", qc) // where nobody listens
				require.ErrorContains(t, err, fmt.Sprintf("%d octets of private data", n), "nothing is connected")
			}
			near, far := net.Pipe()
			_, err := s.rnic.Client(testContext(t), near, qc)
			require.ErrorContains(t, err, fmt.Sprintf("%d octets of private data", n))
			_, err = far.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF, "not one octet of a Request")

			p, cr := requester(t, s.rnic, "pipe", hx(defaultRequest))
			_, err = cr.Accept(testContext(t), &QPConfig{PD: s.pd, PrivateData: make([]byte, n), MPA: o})
			require.ErrorContains(t, err, fmt.Sprintf("%d octets of private data", n))
			p.wantEnd("not one octet of a Reply")
		}
		_, err := s.rnic.Dial(testContext(t), "sctp+udp", "127.0.0.1:1", &QPConfig{PD: s.pd, PrivateData: make([]byte, 509)})
		require.ErrorContains(t, err, "509 octets of private data, at most 508")
		_, err = s.rnic.Dial(testContext(t), "tcp", "127.0.0.1:1", &QPConfig{PD: s.pd, PrivateData: make([]byte, 229), Commit: &CommitOptions{Negotiate: true}})
		require.ErrorContains(t, err, "249 octets of private data, at most 248 are allowed without LargePrivateData; 20 of them")
		p, cr := requester(t, s.rnic, "pipe", hx(defaultRequest))
		require.ErrorContains(t, cr.Reject(make([]byte, 249)), "249 octets")
		p.wantEnd("not one octet of a Reply")
	})
}

func TestMPA_64_68_RejectTellsTheReason(t *testing.T) {
	for _, n := range []int{0, 7, 248} {
		bubble(t, func(t *testing.T) {
			client, server := newSide(t, nil), newSide(t, nil)
			ctx := testContext(t)
			l, err := server.rnic.Listen(ctx, "pipe", "", nil)
			require.NoError(t, err)
			defer l.Close()
			reason := bytes.Repeat([]byte{'r'}, n)
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				cr, err := l.Accept(ctx)
				require.NoError(t, err)
				require.NoError(t, cr.Reject(reason))
				require.ErrorIs(t, cr.Reject(nil), errAnswered)
				_, err = cr.Accept(ctx, &QPConfig{PD: server.pd})
				require.ErrorIs(t, err, errAnswered)
			}()
			_, err = client.rnic.Dial(ctx, "pipe", l.Addr().String(), &QPConfig{PD: client.pd, IRD: 3, ORD: 4})
			require.ErrorIs(t, err, ErrRejected)
			var rej *RejectError
			require.ErrorAs(t, err, &rej)
			require.True(t, bytes.Equal(reason, rej.PrivateData))
			require.Equal(t, []int{4, 3}, []int{rej.IRD, rej.ORD}, "the depths would have done")
			<-answered
		})
	}
}

// TestClientKeepsARejectedConnection: it is the caller's (RFC 5044 section 7.1.2).
func TestMPA_68_ClientKeepsARejectedConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		a, b := transport.Pipe(transport.PipeOptions{})
		p := &peer{TB: t, c: b}
		go func() {
			p.wantRequest(defaultRequest)
			p.replies("60 02 0002", []byte("no")...)
		}()
		_, err := s.rnic.Client(testContext(t), a, &QPConfig{PD: s.pd})
		var rej *RejectError
		require.ErrorAs(t, err, &rej)
		require.Equal(t, "no", string(rej.PrivateData))
		require.Equal(t, []int{-1, -1}, []int{rej.IRD, rej.ORD}, "the peer did not say")
		go func() { _, _ = a.Write([]byte("still here")) }()
		p.wantOctets("the connection is still open", []byte("still here"))
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	})
}

func TestSetupRunsBeforeAnythingGoesOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		var heard, ran bool
		looked := make(chan struct{})
		addr := peers(t, func(p *peer) {
			p.wantRequest(defaultRequest)
			heard = true
			p.replies("50 02 0004 8010 8010")
			p.reads(20)
			<-looked
		})
		qp, err := s.rnic.Dial(testContext(t), "pipe", addr, &QPConfig{PD: s.pd, Setup: func(_ context.Context, qp *QP) error {
			synctest.Wait()
			require.False(t, heard, "Setup runs before the Request goes out")
			require.Equal(t, StateIdle, qp.State())
			ran = true
			return qp.PostRecv(RecvWR{ID: 1})
		}})
		require.NoError(t, err)
		require.True(t, ran)
		require.Equal(t, StateRTS, qp.State())
		require.Equal(t, 1, qp.rq.Posted())
		synctest.Wait()
		close(looked)
		require.NoError(t, qp.Abort())

		p, cr := requester(t, s.rnic, "pipe", hx(defaultRequest))
		_, err = cr.Accept(testContext(t), &QPConfig{PD: s.pd, Setup: func(context.Context, *QP) error {
			p.wantIdle("Setup runs before the Reply goes out", time.Second)
			return nil
		}})
		require.NoError(t, err)
		p.wantOctets("the Reply", append([]byte(replyKey), hx("50 02 0004 8010 8010")...))
	})
}

func TestErrorOfSetupEndsTheSetUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		oops := errors.New("oops")
		var made *QP
		qc := &QPConfig{PD: s.pd, Setup: func(_ context.Context, qp *QP) error {
			made = qp
			require.NoError(t, qp.PostRecv(RecvWR{ID: 1}))
			_, err := s.pd.RegisterMR(make([]byte, 1), stag.LocalWrite, &MROptions{QP: qp})
			require.NoError(t, err)
			return oops
		}}
		_, err := s.rnic.Dial(testContext(t), "pipe", peers(t, func(p *peer) { p.wantEnd("no Request goes out") }), qc)
		require.ErrorIs(t, err, oops)
		<-made.Done()
		require.ErrorIs(t, made.Err(), oops)
		require.Equal(t, []Status{StatusFlushed}, statuses(s.completes(made.RecvCQ(), 1)))

		p, cr := requester(t, s.rnic, "pipe", hx(defaultRequest))
		_, err = cr.Accept(testContext(t), qc)
		require.ErrorIs(t, err, oops)
		p.wantEnd("no Reply goes out")
		require.Zero(t, s.rnic.used.qp)
	})
}

// TestFirstMessageFindsItsReceive: what Setup has posted is in place before the peer
// can send, on both sides.
func TestMPA_48_66_FirstMessageFindsItsReceive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		setup := func(_ context.Context, qp *QP) error {
			if err := qp.PostSend(SendWR{ID: 2, Op: OpSend}); err != nil {
				return err
			}
			time.Sleep(time.Second) // a connection that did not wait for this would be too early
			return qp.PostRecv(RecvWR{ID: 1})
		}
		client, server := connect(t, pairConfig{
			network: "pipe",
			client:  QPConfig{RNRWait: -1, Setup: setup},
			server:  QPConfig{RNRWait: -1, Setup: setup, MPA: MPAOptions{EarlyResponderSend: true}},
		})
		for _, s := range []*side{client, server} {
			require.Equal(t, StatusSuccess, s.completes(s.qp.RecvCQ(), 1)[0].Status)
			require.Equal(t, StatusSuccess, s.completes(s.qp.SendCQ(), 1)[0].Status)
		}
	})
}

func TestDepthsAreNegotiated(t *testing.T) {
	for _, c := range []struct{ cIRD, cORD, sIRD, sORD, wantCIRD, wantCORD, wantSIRD, wantSORD int }{
		{0, 0, 0, 0, 16, 16, 16, 16},
		{1, 1, 16, 16, 1, 1, 16, 1},
		{16, 16, 1, 2, 16, 1, 1, 2},
		{3, 9, 5, 2, 3, 5, 5, 2},
		{-1, 4, 4, 4, 0, 4, 4, 0},
		{4, -1, 4, 4, 4, 0, 4, 4},
		{4, 4, -1, 4, 4, 0, 0, 4},
		{4, 4, 4, -1, 4, 4, 4, 0},
		{-1, -1, -1, -1, 0, 0, 0, 0},
	} {
		bubble(t, func(t *testing.T) {
			client, server := connect(t, pairConfig{
				network: "pipe",
				client:  QPConfig{IRD: c.cIRD, ORD: c.cORD}, server: QPConfig{IRD: c.sIRD, ORD: c.sORD},
			})
			require.Equal(t, []int{c.wantCIRD, c.wantCORD, c.wantSIRD, c.wantSORD},
				[]int{client.qp.IRD(), client.qp.ORD(), server.qp.IRD(), server.qp.ORD()}, "%+v", c)
		})
	}
}

func TestRNICCloseEndsASetUp(t *testing.T) {
	for name, wait := range map[string]func(p *peer){
		"before the Reply":        func(p *peer) { p.wantRequest(defaultRequest) },
		"in the midst of a Reply": func(p *peer) { p.wantRequest(defaultRequest); p.writes([]byte(replyKey)) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSide(t, nil)
				closed := make(chan struct{})
				addr := peers(t, func(p *peer) {
					wait(p)
					synctest.Wait()
					require.NoError(t, s.rnic.Close())
					close(closed)
					_, _ = io.Copy(io.Discard, p.c)
				})
				_, err := s.rnic.Dial(testContext(t), "pipe", addr, &QPConfig{PD: s.pd, MPA: MPAOptions{NoFallback: true}})
				require.ErrorIs(t, err, net.ErrClosed)
				<-closed
				_, err = s.rnic.Dial(testContext(t), "pipe", addr, &QPConfig{PD: s.pd})
				require.ErrorIs(t, err, net.ErrClosed, "a closed RNIC makes nothing")
				_, err = s.rnic.Listen(testContext(t), "pipe", "", nil)
				require.ErrorIs(t, err, net.ErrClosed)
				_, err = s.rnic.CreateCQ(1)
				require.ErrorIs(t, err, net.ErrClosed)
			})
		})
	}
}

func TestARCH_30_SEC_38_QPOverTLS(t *testing.T) {
	cert := testCertificate(t)
	serverTLS := &tls.Config{Certificates: []tls.Certificate{cert}}
	clientTLS := &tls.Config{RootCAs: rootsOf(t, cert), ServerName: "iwarp.test"}
	writeReadSend(t, pairConfig{client: QPConfig{TLS: clientTLS}, listen: &ListenConfig{TLS: serverTLS}})

	t.Run("wrong certificate", func(t *testing.T) {
		client, server := newSide(t, nil), newSide(t, nil)
		l, err := server.rnic.Listen(testContext(t), "tcp", "127.0.0.1:0", &ListenConfig{TLS: serverTLS})
		require.NoError(t, err)
		defer l.Close()
		_, err = client.rnic.Dial(testContext(t), "tcp", l.Addr().String(), &QPConfig{PD: client.pd, TLS: &tls.Config{ServerName: "iwarp.test"}})
		var unknown *tls.CertificateVerificationError
		require.ErrorAs(t, err, &unknown)
	})
}

// TestClientAndServerOverAnyConn: also one that hides that it is TCP, or that cannot
// end one direction alone.
func TestClientAndServerOverAnyConn(t *testing.T) {
	type hidden struct{ net.Conn }
	tcp := func() (a, b net.Conn) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		a, err = net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		b, err = l.Accept()
		require.NoError(t, err)
		return a, b
	}
	for name, conns := range map[string]func() (a, b net.Conn){
		"TCP": tcp,
		"wrapped TCP": func() (net.Conn, net.Conn) {
			a, b := tcp()
			return hidden{a}, hidden{b}
		},
		"net.Pipe": net.Pipe,
		"Pipe":     func() (a, b net.Conn) { return transport.Pipe(transport.PipeOptions{}) },
	} {
		t.Run(name, func(t *testing.T) {
			client, server := newSide(t, nil), newSide(t, nil)
			ctx := testContext(t)
			client.over(server, conns)
			const n = 1 << 20
			src, srcMR := client.register(n, stag.LocalWrite, nil)
			dst, dstMR := server.register(n, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
			back, backMR := client.register(n, stag.LocalWrite, nil)
			fillRandom(src)
			require.NoError(t, client.qp.RDMAWrite(ctx, dstMR.Advertise(0, n), srcMR.Slice(0, n)))
			require.NoError(t, client.qp.RDMARead(ctx, backMR.Slice(0, n), dstMR.Advertise(0, n)))
			require.True(t, bytes.Equal(src, dst))
			require.True(t, bytes.Equal(src, back))
			start := time.Now()
			require.NoError(t, client.qp.Close())
			<-server.qp.Done()
			require.NoError(t, server.qp.Err())
			require.Equal(t, StateIdle, client.qp.State())
			require.Less(t, time.Since(start), qpconn.PeerEndTime, "nobody waits for a FIN that cannot come")
		})
		t.Run(name+" terminated", func(t *testing.T) {
			client, server := newSide(t, nil), newSide(t, nil)
			client.over(server, conns)
			start := time.Now()
			require.NoError(t, client.qp.PostSend(SendWR{Op: OpRDMAWrite, Inline: []byte("x"), Remote: remote}))
			<-client.qp.Done()
			<-server.qp.Done()
			require.ErrorIs(t, client.qp.Err(), ErrInvalidSTag)
			require.True(t, client.qp.Terminated().Remote)
			require.Less(t, time.Since(start), qpconn.PeerEndTime)
		})
	}
}

// over connects s to server over a connection that the application has made.
func (s *side) over(server *side, conns func() (a, b net.Conn)) {
	s.Helper()
	ctx := testContext(s.T)
	a, b := conns()
	accepted := make(chan error, 1)
	go func() {
		cr, err := server.rnic.Server(ctx, b, nil)
		if err == nil {
			server.qp, err = cr.Accept(ctx, &QPConfig{PD: server.pd})
		}
		accepted <- err
	}()
	var err error
	s.qp, err = s.rnic.Client(ctx, a, &QPConfig{PD: s.pd})
	require.NoError(s, err)
	require.NoError(s, <-accepted)
}
