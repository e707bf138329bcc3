package iwarp_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/selfsigned"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

func TestMPA_24_61_RequestByDefault(t *testing.T) {
	for name, c := range map[string]struct {
		qc   iwarp.QPConfig
		want string
	}{
		"default":          {iwarp.QPConfig{}, wiretest.DefaultRequest},
		"no Reads":         {iwarp.QPConfig{IRD: -1, ORD: -1}, "50 02 0004 8000 8000"},
		"other depths":     {iwarp.QPConfig{IRD: 5, ORD: 7}, "50 02 0004 8005 c007"},
		"no CRC, Markers":  {iwarp.QPConfig{MPA: iwarp.MPAOptions{NoCRC: true, Markers: true}}, "90 02 0004 8010 c010"},
		"revision 1":       {iwarp.QPConfig{MPA: iwarp.MPAOptions{Revision: 1}}, "40 01 0000"},
		"private data":     {iwarp.QPConfig{PrivateData: []byte("hi")}, "50 02 0006 8010 c010 6869"},
		"private, revis 1": {iwarp.QPConfig{PrivateData: []byte("hi"), MPA: iwarp.MPAOptions{Revision: 1}}, "40 01 0002 6869"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSide(t, nil)
				c.qc.PD = s.pd
				_, err := s.rnic.Dial(testContext(t), "pipe", wiretest.Serve(t, func(p *wiretest.Peer) {
					p.WantRequest(c.want)
					p.Reply("60 01 0000")
					p.WantEOF("Dial closes what is rejected")
				}), &c.qc)
				require.ErrorIs(t, err, iwarp.ErrRejected)
				require.Zero(t, s.rnic.InUse().MaxQP, "nothing is left of it")
				require.Zero(t, s.rnic.HalfOpen())
			})
		})
	}
}

func TestPrivateDataGoesBothWays(t *testing.T) {
	for _, n := range []int{0, 1, 248, 508} {
		bubble(t, func(t *testing.T) {
			ask, answer := bytes.Repeat([]byte{1}, n), bytes.Repeat([]byte{2}, n)
			large := iwarp.MPAOptions{LargePrivateData: n > 248}
			client, server := newSide(t, nil), newSide(t, nil)
			client.meets(server, iwarp.QPConfig{PrivateData: ask, MPA: large}, func(cr *iwarp.ConnRequest) iwarp.QPConfig {
				require.True(t, bytes.Equal(ask, cr.PrivateData()))
				require.Equal(t, []int{16, 16}, []int{cr.IRD(), cr.ORD()}, "the depths of the initiator can be seen")
				require.NotNil(t, cr.RemoteAddr())
				require.NotNil(t, cr.LocalAddr())
				return iwarp.QPConfig{PrivateData: answer, MPA: large}
			})
			require.True(t, bytes.Equal(ask, server.qp.PrivateData()))
			require.True(t, bytes.Equal(answer, client.qp.PrivateData()))
		})
	}
}

// meets connects s to server over the pipe. answer returns the configuration with which the request is accepted.
func (s *side) meets(server *side, qc iwarp.QPConfig, answer func(*iwarp.ConnRequest) iwarp.QPConfig) {
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
		for n, o := range map[int]iwarp.MPAOptions{249: {}, 509: {LargePrivateData: true}} {
			qc := &iwarp.QPConfig{PD: s.pd, PrivateData: make([]byte, n), MPA: o, Setup: func(context.Context, *iwarp.QP) error {
				t.Fatal("Setup is not called")
				return nil
			}}
			for _, network := range []string{"pipe", "tcp"} {
				_, err := s.rnic.Dial(testContext(t), network, "127.0.0.1:1", qc) // without a listener
				require.ErrorContains(t, err, fmt.Sprintf("%d octets of private data", n), "nothing is connected")
			}
			near, far := net.Pipe()
			_, err := s.rnic.Client(testContext(t), near, qc)
			require.ErrorContains(t, err, fmt.Sprintf("%d octets of private data", n))
			_, err = far.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF, "not one octet of a Request")

			p, cr := requester(t, s.rnic, "pipe", wiretest.Hex(wiretest.DefaultRequest))
			_, err = cr.Accept(testContext(t), &iwarp.QPConfig{PD: s.pd, PrivateData: make([]byte, n), MPA: o})
			require.ErrorContains(t, err, fmt.Sprintf("%d octets of private data", n))
			require.NotZero(t, p.Read(24)[16]&0x20, "the Reply rejects")
			p.WantEOF("and the connection is closed")
		}
		_, err := s.rnic.Dial(testContext(t), "sctp+udp", "127.0.0.1:1", &iwarp.QPConfig{PD: s.pd, PrivateData: make([]byte, 509)})
		require.ErrorContains(t, err, "509 octets of private data, at most 508")
		_, err = s.rnic.Dial(testContext(t), "tcp", "127.0.0.1:1", &iwarp.QPConfig{PD: s.pd, PrivateData: make([]byte, 229), Commit: &iwarp.CommitOptions{Negotiate: true}})
		require.ErrorContains(t, err, "249 octets of private data, at most 248 are allowed without LargePrivateData; 20 of them")
		p, cr := requester(t, s.rnic, "pipe", wiretest.Hex(wiretest.DefaultRequest))
		require.ErrorContains(t, cr.Reject(make([]byte, 249)), "249 octets")
		require.NotZero(t, p.Read(24)[16]&0x20, "the Reply rejects without them")
		p.WantEOF("and the connection is closed")
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
				require.ErrorIs(t, cr.Reject(nil), iwarp.ErrAnswered)
				_, err = cr.Accept(ctx, &iwarp.QPConfig{PD: server.pd})
				require.ErrorIs(t, err, iwarp.ErrAnswered)
			}()
			_, err = client.rnic.Dial(ctx, "pipe", l.Addr().String(), &iwarp.QPConfig{PD: client.pd, IRD: 3, ORD: 4})
			require.ErrorIs(t, err, iwarp.ErrRejected)
			var rej *iwarp.RejectError
			require.ErrorAs(t, err, &rej)
			require.True(t, bytes.Equal(reason, rej.PrivateData))
			require.Equal(t, []int{4, 3}, []int{rej.IRD, rej.ORD}, "the depths would have done")
			<-answered
		})
	}
}

// TestMPA_68_ClientKeepsARejectedConnection: the connection belongs to the caller (RFC 5044 section 7.1.2).
func TestMPA_68_ClientKeepsARejectedConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		a, b := transport.Pipe(transport.PipeOptions{})
		p := &wiretest.Peer{TB: t, Conn: b}
		go func() {
			p.WantRequest(wiretest.DefaultRequest)
			p.Reply("60 02 0002", []byte("no")...)
		}()
		_, err := s.rnic.Client(testContext(t), a, &iwarp.QPConfig{PD: s.pd})
		var rej *iwarp.RejectError
		require.ErrorAs(t, err, &rej)
		require.Equal(t, "no", string(rej.PrivateData))
		require.Equal(t, []int{-1, -1}, []int{rej.IRD, rej.ORD}, "the peer did not say")
		go func() { _, _ = a.Write([]byte("still here")) }()
		p.WantOctets("the connection is still open", []byte("still here"))
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	})
}

func TestSetupRunsBeforeAnythingGoesOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		var heard, ran bool
		looked := make(chan struct{})
		addr := wiretest.Serve(t, func(p *wiretest.Peer) {
			p.WantRequest(wiretest.DefaultRequest)
			heard = true
			p.Reply("50 02 0004 8010 8010")
			p.Read(20)
			<-looked
		})
		qp, err := s.rnic.Dial(testContext(t), "pipe", addr, &iwarp.QPConfig{PD: s.pd, Setup: func(_ context.Context, qp *iwarp.QP) error {
			synctest.Wait()
			require.False(t, heard, "Setup runs before the Request goes out")
			require.Equal(t, iwarp.StateIdle, qp.State())
			ran = true
			return qp.PostRecv(iwarp.RecvWR{ID: 1})
		}})
		require.NoError(t, err)
		require.True(t, ran)
		require.Equal(t, iwarp.StateRTS, qp.State())
		require.Equal(t, 1, qp.Posted())
		synctest.Wait()
		close(looked)
		require.NoError(t, qp.Abort())

		p, cr := requester(t, s.rnic, "pipe", wiretest.Hex(wiretest.DefaultRequest))
		_, err = cr.Accept(testContext(t), &iwarp.QPConfig{PD: s.pd, Setup: func(context.Context, *iwarp.QP) error {
			p.WantIdle("Setup runs before the Reply goes out", time.Second)
			return nil
		}})
		require.NoError(t, err)
		p.WantReply("the Reply", "50 02 0004 8010 8010")
	})
}

func TestErrorOfSetupEndsTheSetUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		oops := errors.New("oops")
		var made *iwarp.QP
		qc := &iwarp.QPConfig{PD: s.pd, Setup: func(_ context.Context, qp *iwarp.QP) error {
			made = qp
			require.NoError(t, qp.PostRecv(iwarp.RecvWR{ID: 1}))
			_, err := s.pd.RegisterMR(make([]byte, 1), stag.LocalWrite, &iwarp.MROptions{QP: qp})
			require.NoError(t, err)
			return oops
		}}
		_, err := s.rnic.Dial(testContext(t), "pipe", wiretest.Serve(t, func(p *wiretest.Peer) { p.WantEOF("no Request goes out") }), qc)
		require.ErrorIs(t, err, oops)
		<-made.Done()
		require.ErrorIs(t, made.Err(), oops)
		require.Equal(t, []iwarp.Status{iwarp.StatusFlushed}, statuses(s.completes(made.RecvCQ(), 1)))

		p, cr := requester(t, s.rnic, "pipe", wiretest.Hex(wiretest.DefaultRequest))
		_, err = cr.Accept(testContext(t), qc)
		require.ErrorIs(t, err, oops)
		require.NotZero(t, p.Read(24)[16]&0x20, "the Reply rejects")
		p.WantEOF("and the connection is closed")
		require.Zero(t, s.rnic.InUse().MaxQP)
	})
}

// TestMPA_48_66_FirstMessageFindsItsReceive: on both sides, the receives that Setup has posted are in place before the
// peer can send.
func TestMPA_48_66_FirstMessageFindsItsReceive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		setup := func(_ context.Context, qp *iwarp.QP) error {
			if err := qp.PostSend(iwarp.SendWR{ID: 2, Op: iwarp.OpSend}); err != nil {
				return err
			}
			time.Sleep(time.Second) // a connection that did not wait for this would be too early
			return qp.PostRecv(iwarp.RecvWR{ID: 1})
		}
		client, server := connect(t, pairConfig{
			network: "pipe",
			client:  iwarp.QPConfig{RNRWait: -1, Setup: setup},
			server:  iwarp.QPConfig{RNRWait: -1, Setup: setup, MPA: iwarp.MPAOptions{EarlyResponderSend: true}},
		})
		for _, s := range []*side{client, server} {
			require.Equal(t, iwarp.StatusSuccess, s.completes(s.qp.RecvCQ(), 1)[0].Status)
			require.Equal(t, iwarp.StatusSuccess, s.completes(s.qp.SendCQ(), 1)[0].Status)
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
				client:  iwarp.QPConfig{IRD: c.cIRD, ORD: c.cORD}, server: iwarp.QPConfig{IRD: c.sIRD, ORD: c.sORD},
			})
			require.Equal(t, []int{c.wantCIRD, c.wantCORD, c.wantSIRD, c.wantSORD},
				[]int{client.qp.IRD(), client.qp.ORD(), server.qp.IRD(), server.qp.ORD()}, "%+v", c)
		})
	}
}

func TestRNICCloseEndsASetUp(t *testing.T) {
	for name, wait := range map[string]func(p *wiretest.Peer){
		"before the Reply":        func(p *wiretest.Peer) { p.WantRequest(wiretest.DefaultRequest) },
		"in the midst of a Reply": func(p *wiretest.Peer) { p.WantRequest(wiretest.DefaultRequest); p.Write([]byte(wiretest.ReplyKey)) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSide(t, nil)
				closed := make(chan struct{})
				addr := wiretest.Serve(t, func(p *wiretest.Peer) {
					wait(p)
					synctest.Wait()
					require.NoError(t, s.rnic.Close())
					close(closed)
					_, _ = io.Copy(io.Discard, p.Conn)
				})
				_, err := s.rnic.Dial(testContext(t), "pipe", addr, &iwarp.QPConfig{PD: s.pd, MPA: iwarp.MPAOptions{NoFallback: true}})
				require.ErrorIs(t, err, net.ErrClosed)
				<-closed
				_, err = s.rnic.Dial(testContext(t), "pipe", addr, &iwarp.QPConfig{PD: s.pd})
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
	cert, roots := selfsigned.New("iwarp.test")
	serverTLS := &tls.Config{Certificates: []tls.Certificate{cert}}
	clientTLS := &tls.Config{RootCAs: roots, ServerName: "iwarp.test"}
	writeReadSend(t, pairConfig{client: iwarp.QPConfig{TLS: clientTLS}, listen: &iwarp.ListenConfig{TLS: serverTLS}})

	t.Run("wrong certificate", func(t *testing.T) {
		client, server := newSide(t, nil), newSide(t, nil)
		l, err := server.rnic.Listen(testContext(t), "tcp", "127.0.0.1:0", &iwarp.ListenConfig{TLS: serverTLS})
		require.NoError(t, err)
		defer l.Close()
		_, err = client.rnic.Dial(testContext(t), "tcp", l.Addr().String(), &iwarp.QPConfig{PD: client.pd, TLS: &tls.Config{ServerName: "iwarp.test"}})
		var unknown *tls.CertificateVerificationError
		require.ErrorAs(t, err, &unknown)
	})
	t.Run("no ServerName", func(t *testing.T) {
		client, server := newSide(t, nil), newSide(t, nil)
		l, err := server.rnic.Listen(testContext(t), "tcp", "127.0.0.1:0", &iwarp.ListenConfig{TLS: serverTLS})
		require.NoError(t, err)
		defer l.Close()
		cfg := &tls.Config{RootCAs: roots}
		_, err = client.rnic.Dial(testContext(t), "tcp", l.Addr().String(), &iwarp.QPConfig{PD: client.pd, TLS: cfg})
		var other x509.HostnameError
		require.ErrorAs(t, err, &other)
		require.Equal(t, "127.0.0.1", other.Host, "it is the host of the address")
		require.Empty(t, cfg.ServerName)
	})
}

// TestClientAndServerOverAnyConn: also over a connection that hides that it is TCP, or that cannot end one direction
// alone.
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
			require.NoError(t, client.qp.Close())
			<-server.qp.Done()
			require.NoError(t, server.qp.Err(), "the end does not wait for a FIN that cannot come")
			require.Equal(t, iwarp.StateIdle, client.qp.State())
		})
		t.Run(name+" terminated", func(t *testing.T) {
			client, server := newSide(t, nil), newSide(t, nil)
			client.over(server, conns)
			start := time.Now()
			require.NoError(t, client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Inline: []byte("x"), Remote: remote}))
			<-client.qp.Done()
			<-server.qp.Done()
			require.ErrorIs(t, client.qp.Err(), iwarp.ErrInvalidSTag)
			require.True(t, client.qp.Terminated().Remote)
			require.Less(t, time.Since(start), iwarp.PeerEndTime)
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
			server.qp, err = cr.Accept(ctx, &iwarp.QPConfig{PD: server.pd})
		}
		accepted <- err
	}()
	var err error
	s.qp, err = s.rnic.Client(ctx, a, &iwarp.QPConfig{PD: s.pd})
	require.NoError(s, err)
	require.NoError(s, <-accepted)
}
