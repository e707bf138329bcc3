package sctpudp

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/placertest"
)

// A stuckSocket takes packets no more, from some time on: those before are still in the system, since the interface is paused.
type stuckSocket struct {
	net.PacketConn
	stuck  *atomic.Bool
	closed chan struct{}
	once   sync.Once
}

func (s *stuckSocket) WriteTo(p []byte, to net.Addr) (int, error) {
	if s.stuck.Load() {
		<-s.closed
		return 0, net.ErrClosed
	}
	return s.PacketConn.WriteTo(p, to)
}

func (s *stuckSocket) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.PacketConn.Close()
}

// sticking makes sockets on a cable that take packets until stuck is set.
func sticking(c *cable, stuck *atomic.Bool) Config {
	return Config{ListenPacket: func(ctx context.Context, network, address string) (net.PacketConn, error) {
		pc, err := c.listen(ctx, network, address)
		return &stuckSocket{PacketConn: pc, stuck: stuck, closed: make(chan struct{})}, err
	}}
}

// TestSocketThatTakesNoPackets: sessions end after PeerTimeout, as those of a peer that is gone, and what ends all associations returns.
func TestSocketThatTakesNoPackets(t *testing.T) {
	for name, x := range map[string]struct{ ofClient, ofListener, heard bool }{
		"a client's": {ofClient: true},
		"a client's, and the peer is still heard": {ofClient: true, heard: true}, // its packets are answered, or would be
		"a listener's": {ofListener: true},
		"a listener's, and the peer is still heard": {ofListener: true, heard: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &cable{delay: 2 * nearby, ends: make(map[netip.AddrPort]*cableEnd)}
				var client, listener atomic.Bool
				l, err := Listen(t.Context(), sticking(c, &listener), "127.0.0.1:0", 4)
				require.NoError(t, err)
				p := &pair{TB: t, l: l, c: NewClient(sticking(c, &client))}
				p.client, p.server = p.session(t.Context())
				client.Store(x.ofClient)
				listener.Store(x.ofListener)
				stuck, other, begun := p.client, p.server, time.Now()
				if x.ofListener {
					stuck, other = other, stuck
				}
				if c.cut.Store(!x.heard); x.heard {
					require.True(t, other.Append([]byte("anything"), nil, true))
					require.NoError(t, other.Flush(true))
				}
				require.ErrorIs(t, placertest.Receive(stuck, &placertest.Collector{Want: 2}), syscall.ETIMEDOUT)
				require.LessOrEqual(t, time.Since(begun), 2*defaultPeerTimeout)
				p.c.Close()
				l.End()
			})
		})
	}
}
