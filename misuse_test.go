package iwarp_test

import (
	"context"
	"crypto/tls"
	"math"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/setup"
	"github.com/goiwarp/iwarp/stag"
)

// slicedBuffer is a Buffer and a Flusher whose values cannot be compared.
type slicedBuffer struct{ octets []byte }

func (b slicedBuffer) ReadAt(p []byte, off int64) (int, error) { return copy(p, b.octets[off:]), nil }

func (b slicedBuffer) WriteAt(p []byte, off int64) (int, error)      { return copy(b.octets[off:], p), nil }
func (b slicedBuffer) Size() int64                                   { return int64(len(b.octets)) }
func (slicedBuffer) Flush(context.Context, int64, int64) (err error) { return nil }

// slicedAuth is an Authenticator whose values cannot be compared.
type slicedAuth struct {
	iwarp.Authenticator
	_ []int
}

func (slicedAuth) Respond(context.Context, *iwarp.AuthInfo) (iwarp.AuthSession, error) {
	return nil, nil
}

// slicedConn is a net.Conn whose values cannot be compared, and which has no addresses.
type slicedConn struct {
	net.Conn
	_ []int
}

func (slicedConn) LocalAddr() net.Addr  { return nil }
func (slicedConn) RemoteAddr() net.Addr { return nil }

// TestMisuseIsRefused: an invalid argument is refused with an error that names it.
func TestMisuseIsRefused(t *testing.T) {
	s := newSide(t, nil)
	ctx := testContext(t)
	dial := func(qc iwarp.QPConfig) error {
		qc.PD = s.pd
		_, err := s.rnic.Dial(ctx, "pipe", "absent", &qc)
		return err
	}
	listen := func(lc iwarp.ListenConfig) error {
		_, err := s.rnic.Listen(ctx, "pipe", "misuse", &lc)
		return err
	}
	open := func(l iwarp.Limits) error {
		_, err := iwarp.Open(&iwarp.Config{Limits: l})
		return err
	}
	for says, err := range map[string]error{
		"limit reached: Limits.MaxQueueDepth is 1073741824, at most 1073741823":                                    open(iwarp.Limits{MaxQueueDepth: 1 << 30}),
		"limit reached: Limits.MaxCQDepth is 1073741824, at most 1073741823":                                       open(iwarp.Limits{MaxCQDepth: 1 << 30}),
		"limit reached: Limits.MaxHalfOpen is 1048577, at most 1048576":                                            open(iwarp.Limits{MaxHalfOpen: 1<<20 + 1}),
		"limit reached: Limits.MaxORD is 16383, at most 16382":                                                     open(iwarp.Limits{MaxORD: 16383}),
		"iwarp: QPConfig.MPA.Revision is 3, want 1 or 2":                                                           dial(iwarp.QPConfig{MPA: iwarp.MPAOptions{Revision: 3}}),
		"iwarp: QPConfig.MPA.RTR has unknown kinds: 0x8":                                                           dial(iwarp.QPConfig{MPA: iwarp.MPAOptions{RTR: 8}}),
		"iwarp: QPConfig.MPA.MaxULPDU is negative: -1":                                                             dial(iwarp.QPConfig{MPA: iwarp.MPAOptions{MaxULPDU: -1}}),
		"iwarp: ListenConfig.SetupTimeout is -1ns, ProgressTimeout 0s and MaxHalfOpen 0, and none may be negative": listen(iwarp.ListenConfig{SetupTimeout: -1}),
		"iwarp: Serve: the function that handles requests is nil":                                                  new(iwarp.Listener).Serve(ctx, nil),
	} {
		require.EqualError(t, err, strings.Replace(says, "limit reached", iwarp.ErrLimit.Error(), 1))
	}
}

// TestValuesThatCannotBeCompared: a Buffer, an Authenticator and a net.Conn of the program may have a
// type for which == panics.
func TestValuesThatCannotBeCompared(t *testing.T) {
	client, server := newSide(t, nil), newSide(t, nil)
	ctx := testContext(t)
	b := slicedBuffer{make([]byte, 8)}
	_, err := client.pd.RegisterBuffer(b, stag.LocalWrite, &iwarp.MROptions{Durable: b})
	require.ErrorContains(t, err, "pass the same iwarp_test.slicedBuffer, of a type that can be compared, to RegisterBuffer")

	for _, auth := range []iwarp.Authenticator{nil, slicedAuth{}} {
		a, b := net.Pipe()
		dialed := make(chan error, 1)
		go func() {
			_, err := client.rnic.Client(ctx, slicedConn{Conn: a}, &iwarp.QPConfig{PD: client.pd})
			dialed <- err
		}()
		cr, err := server.rnic.Server(ctx, slicedConn{Conn: b}, nil)
		require.NoError(t, err)
		_, err = cr.Accept(ctx, &iwarp.QPConfig{PD: server.pd, Auth: auth})
		if auth == nil {
			require.NoError(t, err)
			require.NoError(t, <-dialed)
			continue
		}
		require.EqualError(t, err, "iwarp: QPConfig.Auth is not the Authenticator of the listener")
		require.Equal(t, 1, server.rnic.InUse().MaxQP, "that of the first connection")
		require.Error(t, <-dialed)
	}

	a, c := net.Pipe()
	go func() { _, _ = client.rnic.Client(ctx, a, &iwarp.QPConfig{PD: client.pd}) }()
	_, err = server.rnic.Server(ctx, slicedConn{Conn: c}, &iwarp.ListenConfig{Auth: slicedAuth{}})
	require.EqualError(t, err, "iwarp: server: the Authenticator has returned no session")
	_, err = client.rnic.Client(ctx, new(net.TCPConn), &iwarp.QPConfig{PD: client.pd})
	require.ErrorIs(t, err, syscall.EINVAL)
	require.Empty(t, setup.NetworkOf(nil))
}

// TestExportOfTooMuch: package tls panics if it cannot export that much.
func TestExportOfTooMuch(t *testing.T) {
	certificate, _ := selfSigned("localhost")
	client, _ := connect(t, pairConfig{
		client: iwarp.QPConfig{TLS: &tls.Config{InsecureSkipVerify: true}},
		listen: &iwarp.ListenConfig{TLS: &tls.Config{Certificates: []tls.Certificate{certificate}}},
	})
	for _, n := range []int{math.MinInt, -1, 8161, math.MaxInt} {
		_, err := client.qp.Export("label", nil, n)
		require.ErrorContains(t, err, "octets, at most 8160 are possible", n)
	}
	_, err := client.qp.Export(strings.Repeat("x", 250), nil, 1)
	require.EqualError(t, err, "iwarp: export: a label of 250 octets, at most 249 are possible")
	b, err := client.qp.Export(strings.Repeat("x", 249), nil, 8160)
	require.NoError(t, err)
	require.Len(t, b, 8160)
}

// flushes is a Flusher.
type flushes func(off, n int64) error

func (f flushes) Flush(_ context.Context, off, n int64) error { return f(off, n) }

// TestCloseFromInsideAFlusher: it would wait for itself, as inside a Buffer.
func TestCloseFromInsideAFlusher(t *testing.T) {
	commits := iwarp.QPConfig{Commit: new(iwarp.CommitOptions)}
	for name, end := range map[string]func(s *side, mr *iwarp.MR) error{
		"MR.Invalidate": func(_ *side, mr *iwarp.MR) error { return mr.Invalidate(context.Background()) },
		"MR.Close":      func(_ *side, mr *iwarp.MR) error { return mr.CloseContext(context.Background()) },
		"QP.Close":      func(s *side, _ *iwarp.MR) error { return s.qp.Close() },
		"RNIC.Shutdown": func(s *side, _ *iwarp.MR) error { return s.rnic.Shutdown(context.Background()) },
	} {
		for _, inFlush := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				client, server := connect(t, pairConfig{client: commits, server: commits})
				var mr *iwarp.MR
				var err error
				ends := func(int64, int64) error {
					err = end(server, mr)
					return nil
				}
				opts := &iwarp.MROptions{Durable: flushes(ends)}
				if !inFlush {
					opts = &iwarp.MROptions{Durable: flushes(func(int64, int64) error { return nil }), Integrity: ends}
				}
				_, mr = server.register(64, stag.LocalWrite|stag.Remote, opts)
				require.NoError(t, client.qp.Commit(testContext(t), mr.Advertise(0, 64)))
				require.ErrorIs(t, err, iwarp.ErrInBuffer)
			})
		}
	}
}
