package setup

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
)

var (
	errClosed      = errors.New("closed for good")
	errUnsupported = errors.New("there is no such thing")
	errLimit       = errors.New("there is no more of it")
)

const maxHalfOpen = 64

// newManager makes a Manager that ends with the test.
func newManager(t *testing.T) *Manager {
	t.Helper()
	p, err := transport.NewPoller()
	require.NoError(t, err)
	var running sync.WaitGroup
	m := New(Config{
		Log: slog.New(slog.DiscardHandler), Poller: p,
		Start: func(f func()) { running.Go(f) }, Closed: errClosed, Unsupported: errUnsupported,
		Limit: errLimit, MaxHalfOpen: maxHalfOpen,
	})
	t.Cleanup(func() {
		m.Refuse(errClosed)
		m.Wait()
		m.Close()
		running.Wait()
		require.NoError(t, p.Close())
	})
	return m
}

// A result is what Establish was given.
type result struct {
	llp      transport.LLP
	terms    *mpa.Terms
	prepared int
}

// local returns a Local that records its outcome. The connection ends with the test.
func local(t *testing.T) (*Local, *result) {
	got := new(result)
	t.Cleanup(func() {
		if got.llp != nil {
			got.llp.Abort(nil)
		}
	})
	return &Local{
		IRD: 16, ORD: 16,
		Prepare: func(context.Context) error {
			got.prepared++
			return nil
		},
		Establish: func(_ context.Context, llp transport.LLP, terms *mpa.Terms) error {
			got.llp, got.terms = llp, terms
			return nil
		},
	}, got
}

// someTime bounds the waits of the tests.
func someTime(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// A peer is the other end of a connection, played by the test octet by octet.
type peer struct {
	testing.TB
	c net.Conn
}

// dribblesRequest sends an octet of a Request every 300 ms until that fails. The whole Request would take 6 s.
func (p *peer) dribblesRequest() {
	octets := request(plain)
	for i := 0; ; i++ {
		if _, err := p.c.Write(octets[i : i+1]); err != nil {
			return
		}
		time.Sleep(300 * time.Millisecond)
	}
}

const (
	requestKey = "MPA ID Req Frame"
	replyKey   = "MPA ID Rep Frame"

	// What follows the key of a Request: CRCs and enhanced data, revision 2, A, C and D
	// set, depths of 16.
	enhancedRequest = "50 02 0004 8010 c010"
	// A Request of revision 1, and a Reply to it.
	plain = "40 01 0000"
)

func frame(key, rest string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(rest, " ", ""))
	if err != nil {
		panic(err)
	}
	return append([]byte(key), b...)
}

func request(rest string) []byte { return frame(requestKey, rest) }

// peers accepts connections on the pipe and plays one script for each, in turn. A
// connection that comes when the scripts are used up fails the test.
func peers(t *testing.T, scripts ...func(p *peer)) (addr string) {
	t.Helper()
	l, err := transport.Listen(context.Background(), "pipe", "", transport.Options{})
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		for i := 0; ; i++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if i < len(scripts) {
				scripts[i](&peer{TB: t, c: c})
			} else {
				t.Error("one connection too many")
			}
			_ = c.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

// calls connects to l, and sends octets if there are any.
func calls(t *testing.T, l *Listener, octets []byte) *peer {
	t.Helper()
	c, err := transport.Dial(someTime(t), "pipe", l.Addr().String(), transport.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	p := &peer{TB: t, c: c}
	if len(octets) > 0 { // else the listener may have closed the connection before
		p.writes(octets)
	}
	return p
}

func (p *peer) writes(b []byte) {
	p.Helper()
	_, err := p.c.Write(b)
	require.NoError(p, err)
}

// wants waits for these octets.
func (p *peer) wants(want []byte) {
	p.Helper()
	got := make([]byte, len(want))
	_, err := io.ReadFull(p.c, got)
	require.NoError(p, err)
	require.Equal(p, want, got)
}

// wantsEnd waits for the graceful end of the connection.
func (p *peer) wantsEnd(expectation string) {
	p.Helper()
	n, err := p.c.Read(make([]byte, 1))
	require.Zero(p, n, expectation)
	require.ErrorIs(p, err, io.EOF, expectation)
}

// wantsGone waits for the end of the connection, of whatever kind.
func (p *peer) wantsGone(expectation string) {
	p.Helper()
	n, err := p.c.Read(make([]byte, 1))
	require.Zero(p, n, expectation)
	require.True(p, errors.Is(err, io.EOF) || strings.Contains(err.Error(), syscall.ECONNRESET.Error()), "%s: %v", expectation, err)
}
