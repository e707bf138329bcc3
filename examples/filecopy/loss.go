package main

import (
	"context"
	"math/rand/v2"
	"net"
)

// listenPacket opens a UDP socket that loses some of what is sent.
func (k link) listenPacket(ctx context.Context, network, address string) (net.PacketConn, error) {
	c, err := new(net.ListenConfig).ListenPacket(ctx, network, address)
	return &losingConn{PacketConn: c, share: k.loss / 100}, err
}

type losingConn struct {
	net.PacketConn
	share float64
}

func (c *losingConn) WriteTo(p []byte, to net.Addr) (int, error) {
	if rand.Float64() < c.share {
		return len(p), nil
	}
	return c.PacketConn.WriteTo(p, to)
}
