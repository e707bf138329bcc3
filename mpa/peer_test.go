package mpa

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

// A peer is the scripted other end of a connection under test.
type peer struct {
	t *testing.T
	c net.Conn
}

// converse runs a conversation over a pipe, in virtual time.
func converse(t *testing.T, talk func(t *testing.T, s transport.Stream, p *peer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := transport.Pipe(transport.PipeOptions{})
		defer ours.Close()
		defer theirs.Close()
		talk(t, transport.NewStream(ours, nil), &peer{t, theirs})
	})
}

func (p *peer) send(b []byte) {
	p.t.Helper()
	_, err := p.c.Write(b)
	require.NoError(p.t, err, "the peer sends")
}

func (p *peer) want(what string, b []byte) {
	p.t.Helper()
	got := make([]byte, len(b))
	n, err := io.ReadFull(p.c, got)
	require.NoError(p.t, err, "%s: got % x", what, got[:n])
	require.Equal(p.t, b, got, what)
}

// wantNothing checks that nothing comes and the connection stays open.
func (p *peer) wantNothing(what string) {
	p.t.Helper()
	require.NoError(p.t, p.c.SetReadDeadline(time.Now().Add(time.Minute)))
	var b [64]byte
	n, err := p.c.Read(b[:])
	var timeout net.Error
	require.ErrorAs(p.t, err, &timeout, "%s: got % x", what, b[:n])
	require.True(p.t, timeout.Timeout(), "%s: got %v", what, err)
	require.NoError(p.t, p.c.SetReadDeadline(time.Time{}))
}

// wantClosed says that the connection has been closed and nothing came before.
func (p *peer) wantClosed(what string) {
	p.t.Helper()
	require.NoError(p.t, p.c.SetReadDeadline(time.Now().Add(time.Minute)))
	var b [64]byte
	n, err := p.c.Read(b[:])
	require.Zero(p.t, n, "%s: got % x", what, b[:n])
	require.Error(p.t, err, what)
	var timeout net.Error
	if errors.As(err, &timeout) {
		require.False(p.t, timeout.Timeout(), "%s: still open", what)
	}
}

// A result is how a set-up ended.
type result struct {
	conn  *Conn
	terms *Terms
	err   error
}

// connect starts Connect; the function that it returns waits for its end.
func connect(ctx context.Context, s transport.Stream, o Options, ird, ord int, private string) func() result {
	done := make(chan result, 1)
	go func() {
		c, t, err := Connect(ctx, s, o, ird, ord, []byte(private))
		done <- result{c, t, err}
	}()
	return func() result { return <-done }
}

// accept starts a responder that accepts.
func accept(ctx context.Context, s transport.Stream, o Options, ird, ord int, private string) func() result {
	done := make(chan result, 1)
	go func() {
		r, err := ReadRequest(ctx, s)
		if err != nil {
			done <- result{err: err}
			return
		}
		c, t, err := r.Accept(ctx, o, ird, ord, []byte(private))
		done <- result{c, t, err}
	}()
	return func() result { return <-done }
}

// establish makes both ends of a connection over a pipe.
func establish(t *testing.T, initiator, responder Options) (a, b result) {
	t.Helper()
	x, y := transport.Pipe(transport.PipeOptions{})
	accepted := accept(t.Context(), transport.NewStream(y, nil), responder, 8, 8, "")
	connected := connect(t.Context(), transport.NewStream(x, nil), initiator, 8, 8, "")
	a, b = connected(), accepted()
	require.NoError(t, a.err)
	require.NoError(t, b.err)
	return a, b
}

// The frames of the vectors.
const (
	keyReq = "4d504120494420526571204672616d65"
	keyRep = "4d504120494420526570204672616d65"

	frameR1 = keyReq + "40010000"
	frameR2 = keyRep + "40010000"
	frameR3 = keyRep + "60010002 6e6f"
	frameR4 = keyReq + "c0010004 61626364"
	frameR5 = keyReq + "50020004 8010c008"
	frameR6 = keyRep + "50020004 80088010"
	frameR7 = keyReq + "50020006 3fff3fff 6869"
	frameR8 = keyRep + "70020004 c0010040"
)
