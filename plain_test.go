package iwarp_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
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

// serves runs f for each connection to the address that it returns.
func serves(t *testing.T, f func(c net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(wiretest.Patience))
				f(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

// TestErrorsOfSetUpAreInPlainWords: each error says once what has failed, and what the reader can do.
func TestErrorsOfSetUpAreInPlainWords(t *testing.T) {
	cert, roots := selfsigned.New("iwarp.test")
	secure := &tls.Config{Certificates: []tls.Certificate{cert}}
	untrusting := &tls.Config{RootCAs: roots, ServerName: "iwarp.test"}
	s := newSide(t, nil)
	expired, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	rude := serves(t, func(c net.Conn) {})
	web := serves(t, func(c net.Conn) {
		_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
		_, _ = io.Copy(io.Discard, c)
	})
	overTLS, err := s.rnic.Listen(testContext(t), "tcp", "127.0.0.1:0", &iwarp.ListenConfig{TLS: secure})
	require.NoError(t, err)
	plainly, err := s.rnic.Listen(testContext(t), "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)

	for name, c := range map[string]struct {
		ctx           context.Context
		network, addr string
		qc            iwarp.QPConfig
		says          string // ADDR stands for addr
		is            error
	}{
		"no listener":              {nil, "tcp", "127.0.0.1:1", iwarp.QPConfig{}, "iwarp: dial tcp ADDR: connect: connection refused", nil},
		"no listener, SCTP":        {nil, "sctp+udp", "127.0.0.1:1", iwarp.QPConfig{}, "iwarp: dial sctp+udp ADDR: ", nil},
		"no listener, pipe":        {nil, "pipe", "unused", iwarp.QPConfig{}, "iwarp: dial pipe ADDR: connection refused", nil},
		"no network":               {nil, "udp", "127.0.0.1:1", iwarp.QPConfig{}, "iwarp: dial udp: unknown network udp", nil},
		"no port":                  {nil, "tcp", "host", iwarp.QPConfig{}, "iwarp: dial tcp: address ADDR: missing port in address", nil},
		"too late":                 {expired, "pipe", "unused", iwarp.QPConfig{}, "iwarp: dial pipe ADDR: context deadline exceeded", context.DeadlineExceeded},
		"a peer that hangs up":     {nil, "tcp", rude, iwarp.QPConfig{}, "iwarp: dial tcp ADDR: the peer closed the connection before it sent an MPA Reply; it may speak another protocol, or expect TLS (QPConfig.TLS)", nil},
		"something else":           {nil, "tcp", web, iwarp.QPConfig{}, `iwarp: dial tcp ADDR: MPA: invalid Request or Reply frame (2/0/04): not an MPA frame: it begins with "HTTP/1.1 400 Bad"`, nil},
		"something else, TLS":      {nil, "tcp", web, iwarp.QPConfig{TLS: untrusting}, "iwarp: dial tcp ADDR: TLS handshake: the peer does not use TLS: tls: first record does not look like a TLS handshake", nil},
		"plain at a server of TLS": {nil, "tcp", overTLS.Addr().String(), iwarp.QPConfig{}, "iwarp: dial tcp ADDR: the peer closed the connection before it sent an MPA Reply; it may speak another protocol, or expect TLS (QPConfig.TLS)", nil},
		"TLS at a plain server":    {nil, "tcp", plainly.Addr().String(), iwarp.QPConfig{TLS: untrusting}, "iwarp: dial tcp ADDR: TLS handshake: the peer closed the connection; it may not use TLS: ", nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := c.ctx
			if ctx == nil {
				ctx = testContext(t)
			}
			c.qc.PD = s.pd
			_, err := s.rnic.Dial(ctx, c.network, c.addr, &c.qc)
			require.Error(t, err)
			if want := strings.ReplaceAll(c.says, "ADDR", c.addr); strings.HasSuffix(want, ": ") {
				require.Contains(t, err.Error(), want)
			} else {
				require.EqualError(t, err, want)
			}
			require.Equal(t, 1, strings.Count(err.Error(), "iwarp: "), "once")
			require.Equal(t, 1, strings.Count(err.Error(), "dial "), "once")
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
				require.NotErrorIs(t, err, iwarp.ErrUnsupported)
			}
		})
	}
}

// TestErrorOfAContextSaysWhatWasGoingOn: and does not mention a closed connection.
func TestErrorOfAContextSaysWhatWasGoingOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		for says, tls := range map[string]*tls.Config{
			"waiting for the MPA Reply: context deadline exceeded": nil,
			"TLS handshake: context deadline exceeded":             {ServerName: "iwarp.test"},
		} {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			addr := wiretest.Serve(t, func(p *wiretest.Peer) { _, _ = io.Copy(io.Discard, p.Conn) })
			_, err := s.rnic.Dial(ctx, "pipe", addr, &iwarp.QPConfig{PD: s.pd, TLS: tls})
			cancel()
			require.EqualError(t, err, "iwarp: dial pipe "+addr+": "+says)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
	})
}

// TestErrorsOfClientTellWhichSideHungUp: only if the peer hung up does the error suggest an old peer.
func TestErrorsOfClientTellWhichSideHungUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		for _, octets := range []int{4, 24} { // during the Request, and after it
			near, far := net.Pipe()
			go func() {
				_, _ = io.ReadFull(far, make([]byte, octets))
				_ = near.Close()
			}()
			_, err := s.rnic.Client(testContext(t), near, &iwarp.QPConfig{PD: s.pd})
			require.EqualError(t, err, "iwarp: client: the connection was closed on this side")
			require.ErrorIs(t, err, io.ErrClosedPipe)
			require.NotErrorIs(t, err, iwarp.ErrUnsupported)

			near, far = net.Pipe()
			go func() {
				_, _ = io.ReadFull(far, make([]byte, octets))
				_ = far.Close()
			}()
			_, err = s.rnic.Client(testContext(t), near, &iwarp.QPConfig{PD: s.pd})
			require.EqualError(t, err, "iwarp: client: the peer closed the connection before it sent an MPA Reply; it may speak another protocol, expect TLS (QPConfig.TLS), or know only MPA revision 1 (MPAOptions.Revision)")
			require.ErrorIs(t, err, iwarp.ErrUnsupported)
		}
		near, _ := net.Pipe()
		go func() {
			synctest.Wait()
			_ = s.rnic.Close()
		}()
		_, err := s.rnic.Client(testContext(t), near, &iwarp.QPConfig{PD: s.pd})
		require.EqualError(t, err, "iwarp: client: RNIC closed: use of closed network connection")
		require.ErrorIs(t, err, net.ErrClosed)
		require.NotErrorIs(t, err, iwarp.ErrUnsupported)
	})
}

// TestErrorOfClientOverTLSOfTheProgram: the library does not know of that TLS, and still says what the peer may be.
func TestErrorOfClientOverTLSOfTheProgram(t *testing.T) {
	s := newSide(t, nil)
	cert, roots := selfsigned.New("iwarp.test")
	addr := serves(t, func(c net.Conn) {
		_, _ = io.ReadFull(tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}}), make([]byte, 24)) // the Request
	})
	c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: roots, ServerName: "iwarp.test"})
	require.NoError(t, err)
	_, err = s.rnic.Client(testContext(t), c, &iwarp.QPConfig{PD: s.pd})
	require.EqualError(t, err, "iwarp: client: the peer closed the connection before it sent an MPA Reply; it may know only MPA revision 1 (MPAOptions.Revision)")
	require.ErrorIs(t, err, iwarp.ErrUnsupported)
}

func TestErrorsOfServerAreInPlainWords(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		server := func(peer func(far net.Conn)) error {
			near, far := net.Pipe()
			defer far.Close()
			go peer(far)
			_, err := s.rnic.Server(testContext(t), near, &iwarp.ListenConfig{SetupTimeout: time.Second, ProgressTimeout: time.Minute})
			return err
		}
		err := server(func(net.Conn) {})
		require.EqualError(t, err, "iwarp: server: waiting for the MPA Request: ListenConfig.SetupTimeout is over (context deadline exceeded)")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		err = server(func(far net.Conn) { _ = far.Close() })
		require.EqualError(t, err, "iwarp: server: the peer closed the connection before it sent all of an MPA Request")
		err = server(func(far net.Conn) {
			_ = tls.Client(far, &tls.Config{ServerName: "x"}).HandshakeContext(testContext(t))
		})
		require.EqualError(t, err, "iwarp: server: the peer uses TLS: set ListenConfig.TLS")
		var f *transport.Fault
		require.ErrorAs(t, err, &f, "the chain is complete")
	})
}

func TestErrorsOfVerbsAreInPlainWords(t *testing.T) {
	client, server := connect(t, pairConfig{})
	_, mr := client.register(64, 0, nil)
	ctx := testContext(t)
	for access, says := range map[stag.Access]string{
		stag.RemoteWrite:                     "iwarp: register: rights not allowed: RemoteWrite needs LocalWrite",
		stag.RemoteAtomic | stag.RemoteRead:  "iwarp: register: rights not allowed: RemoteAtomic needs LocalWrite",
		stag.RemoteWrite | stag.RemoteAtomic: "iwarp: register: rights not allowed: RemoteWrite|RemoteAtomic needs LocalWrite",
		1 << 20:                              "iwarp: register: rights not allowed: unknown right 0x100000",
	} {
		_, err := client.pd.RegisterMR(make([]byte, 8), access, nil)
		require.EqualError(t, err, says)
		_, err = client.pd.AllocMR(8, access, nil)
		require.EqualError(t, err, says)
	}
	_, err := client.pd.RegisterMR(nil, 0, nil)
	require.EqualError(t, err, "iwarp: register: an empty region")
	require.EqualError(t, client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{mr.Slice(0, 8)}, Remote: iwarp.RemoteBuffer{Len: 8}}),
		"iwarp: work request 0 refused: SGE 0: access right missing: the region lacks LocalWrite")
	require.EqualError(t, client.qp.Send(ctx, mr.Slice(60, 8)), "iwarp: SGE 0: outside the bounds of the region: 8 octets at 60 of 64")
	require.ErrorContains(t, client.qp.Commit(ctx), "QPConfig.Commit")
	small := newSide(t, &iwarp.Config{Limits: iwarp.Limits{MaxPD: 1}})
	_, err = small.rnic.AllocPD()
	require.EqualError(t, err, "iwarp: limit reached: all 1 PDs are in use (Config.Limits)")
	_, lent := server.register(8, lendable, nil)
	server.lends(server.qp, lent, 0, 8, stag.RemoteRead, 0)
	require.EqualError(t, server.qp.Close(), "iwarp: close queue pair: memory windows are bound: 1 of them")
	err = lent.Close()
	require.ErrorIs(t, err, iwarp.ErrWindowBound)
	require.Equal(t, 1, strings.Count(err.Error(), "iwarp: "))

	short, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = client.qp.Recv(short, iwarp.SGE{})
	require.EqualError(t, err, "iwarp: Receive: context deadline exceeded")
	require.ErrorIs(t, err, context.DeadlineExceeded)

	require.NoError(t, server.qp.Abort())
	<-client.qp.Done()
	err = client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend})
	require.ErrorContains(t, err, "iwarp: work request 0 refused: connection lost: ")
	require.Equal(t, 1, strings.Count(err.Error(), "iwarp: "))
	require.ErrorIs(t, err, net.ErrClosed)
	var f *transport.Fault
	require.ErrorAs(t, err, &f)

	require.EqualError(t, &iwarp.RejectError{PrivateData: []byte("no"), IRD: -1, ORD: -1}, "iwarp: connection rejected by the peer, with 2 octets of private data")
	require.EqualError(t, &iwarp.RejectError{IRD: -1, ORD: 8}, "iwarp: connection rejected by the peer, with 0 octets of private data (IRD not specified, ORD 8)")
	missing := &iwarp.TerminateError{Layer: 1, Type: 2, Code: 2, Remote: true}
	require.EqualError(t, missing, "iwarp: terminated by the peer: no receive was posted: DDP untagged buffer: invalid MSN, no buffer available (1/2/02)")
}

// A logBuffer holds a log that other goroutines may still be writing.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestResponderThatMayNotSendIsReported: in the error of a helper, and once in the log.
func TestResponderThatMayNotSendIsReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log logBuffer
		client, server := connect(t, pairConfig{
			network: "pipe", client: iwarp.QPConfig{MPA: iwarp.MPAOptions{ClientServer: true}},
			serverR: &iwarp.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))},
		})
		for _, op := range []func(ctx context.Context) error{
			func(ctx context.Context) error { return server.qp.Send(ctx) },
			func(ctx context.Context) error {
				_, err := server.qp.Do(ctx, iwarp.SendWR{Op: iwarp.OpSend})
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			err := op(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "Send: waiting for the initiator's first message, before which a responder may not send (MPAOptions.EarlyResponderSend)")
		}
		require.Equal(t, 1, strings.Count(log.String(), "EarlyResponderSend"), "once: %s", log.String())
		require.NoError(t, client.qp.PostRecv(iwarp.RecvWR{}, iwarp.RecvWR{}, iwarp.RecvWR{}))
		require.NoError(t, client.qp.RDMARead(testContext(t), iwarp.SGE{}, iwarp.RemoteBuffer{}))
		require.NoError(t, server.qp.Send(testContext(t)), "now it may")
		require.NoError(t, client.qp.Abort())
		<-server.qp.Done()
		require.Equal(t, 1, strings.Count(log.String(), "EarlyResponderSend"))
	})
	bubble(t, func(t *testing.T) { // nothing is logged while the message may still arrive
		var log logBuffer
		client, server := connect(t, pairConfig{network: "pipe", serverR: &iwarp.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
		require.NoError(t, client.qp.PostRecv(iwarp.RecvWR{}))
		require.NoError(t, server.qp.Send(testContext(t)))
		time.Sleep(time.Minute)
		require.NotContains(t, log.String(), "EarlyResponderSend")
		require.False(t, errors.Is(server.qp.Err(), net.ErrClosed))
	})
}
