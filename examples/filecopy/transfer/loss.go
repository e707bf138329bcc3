package transfer

import (
	"context"
	"math/rand/v2"
	"net"
)

// listenPacket opens a UDP socket that drops some of the datagrams sent.
func (k Link) listenPacket(ctx context.Context, network, address string) (net.PacketConn, error) {
	c, err := new(net.ListenConfig).ListenPacket(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &losingConn{UDPConn: c.(*net.UDPConn), share: k.Loss / 100}, nil
}

type losingConn struct {
	*net.UDPConn
	share float64
}

func (c *losingConn) WriteTo(p []byte, to net.Addr) (int, error) {
	if rand.Float64() < c.share {
		return len(p), nil
	}
	return c.UDPConn.WriteTo(p, to)
}
