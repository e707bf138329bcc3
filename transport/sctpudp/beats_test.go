package sctpudp

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// A beatConn counts the answers to HEARTBEATs.
type beatConn struct {
	net.PacketConn
	acks *atomic.Int64
}

func (c beatConn) WriteTo(p []byte, to net.Addr) (int, error) {
	if len(p) > headerSize && p[headerSize] == chunkHeartbeatAck {
		c.acks.Add(1)
	}
	return c.PacketConn.WriteTo(p, to)
}

// TestSEC_42_OneHeartbeatOfAPacketIsAnswered: a packet has room for two thousand.
func TestSEC_42_OneHeartbeatOfAPacketIsAnswered(t *testing.T) {
	acks := new(atomic.Int64)
	l, err := Listen(t.Context(), Config{}, "127.0.0.1:0", 1)
	require.NoError(t, err)
	defer l.End()
	c := NewClient(Config{ListenPacket: func(ctx context.Context, network, address string) (net.PacketConn, error) {
		conn, err := new(net.ListenConfig).ListenPacket(ctx, network, address)
		return beatConn{conn, acks}, err
	}})
	defer c.Close()
	p := &pair{TB: t, l: l, c: c}
	p.client, p.server = p.session(t.Context())
	a := p.ours()
	before := acks.Load()
	b := make([]byte, headerSize)
	for range 1000 {
		b = append(b, chunkHeartbeat, 0, 0, chunkHeaderSize)
	}
	require.Zero(t, a.accept(make([]byte, maxPacket), b), "none is for pion")
	require.Less(t, acks.Load(), before+10, "one, and those that the peer has asked for by itself")
	require.Greater(t, acks.Load(), before)
	p.works()
}
