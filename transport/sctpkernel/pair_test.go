package sctpkernel

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
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
		got := &segments{want: 1}
		require.NoError(p, receive(way[1], got))
		require.Equal(p, []string{"segment"}, got.got)
	}
}

// segments takes so many of them.
type segments struct {
	transport.NoPrediction
	want int
	got  []string
}

func (s *segments) Segment(_ uint64, ulpdu []byte) error {
	s.got = append(s.got, string(ulpdu))
	return nil
}

func (s *segments) Segments(seq uint64, batch transport.SegmentBatch) error {
	return transport.EachSegment(s, seq, batch)
}

func (s *segments) enough() bool { return len(s.got) >= s.want }

// count takes so many segments and keeps none.
type count struct {
	transport.NoPrediction
	want int
}

func (c *count) Segment(uint64, []byte) error {
	c.want--
	return nil
}

func (c *count) Segments(seq uint64, batch transport.SegmentBatch) error {
	return transport.EachSegment(c, seq, batch)
}

func (c *count) enough() bool { return c.want <= 0 }

// receive receives until the placer has enough, or there is an error.
func receive(c *sctp.Conn, p waiter) error {
	for {
		if err := c.Receive(p, transport.Park); err != nil && !errors.Is(err, transport.ErrWoken) {
			return err
		}
		if p.enough() {
			return nil
		}
	}
}

// A waiter is a Placer that knows when it has what the test waits for.
type waiter interface {
	transport.Placer
	enough() bool
}
