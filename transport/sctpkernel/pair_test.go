package sctpkernel

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/placertest"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// needsSCTP skips a test where the kernel has no SCTP. Where it must have,
// IWARP_REQUIRE_SCTP is set.
func needsSCTP(t *testing.T) {
	t.Helper()
	s, err := listen(Config{}.withDefaults(), Addr{})
	if errors.Is(err, ErrNoSCTP) && os.Getenv("IWARP_REQUIRE_SCTP") == "" {
		t.Skip("the kernel has no SCTP; the interop lab runs this test")
	}
	require.NoError(t, err)
	s.close()
}

// A pair is a session over the kernel's sockets.
type pair struct {
	*testing.T
	l              *Listener
	at             string // where l is to be found; "": at its address
	c              *Client
	client, server *sctp.Conn
}

func newPair(t *testing.T) *pair {
	t.Helper()
	return newPairOf(t, Config{})
}

func newPairOf(t *testing.T, cfg Config) *pair {
	needsSCTP(t)
	p := &pair{T: t}
	var err error
	p.l, err = Listen(t.Context(), cfg, "127.0.0.1:0", 16)
	require.NoError(t, err)
	p.c = NewClient(cfg)
	t.Cleanup(func() {
		p.c.Close()
		p.l.End()
	})
	p.client, p.server = p.session()
	return p
}

// session makes the two ends of one more session.
func (p *pair) session() (client, server *sctp.Conn) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), 10*time.Second)
	defer cancel()
	accepted := make(chan *sctp.Conn, 1)
	go func() {
		defer close(accepted)
		if r, err := p.l.Accept(); err == nil {
			if c, _, err := r.Accept(sctp.Options{}, 1, 1, nil); err == nil {
				accepted <- c
			}
		}
	}()
	at := p.at
	if at == "" {
		at = p.l.Addr().String()
	}
	s, err := p.c.Open(ctx, at)
	require.NoError(p, err)
	client, _, err = sctp.Connect(ctx, s, sctp.Options{}, 1, 1, nil)
	require.NoError(p, err)
	return client, <-accepted
}

// works sends a segment each way.
func (p *pair) works() {
	p.Helper()
	for _, way := range [][2]*sctp.Conn{{p.client, p.server}, {p.server, p.client}} {
		require.True(p, way[0].Append([]byte("seg"), [][]byte{[]byte("ment")}, true))
		require.NoError(p, way[0].Flush(true))
		got := &placertest.Collector{Want: 1}
		require.NoError(p, placertest.Receive(way[1], got))
		require.Equal(p, []string{"segment"}, got.Got)
	}
}
