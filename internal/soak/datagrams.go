package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// datagrams counts the datagrams that are damaged on purpose.
type datagrams struct {
	lost, late, corrupt atomic.Int64
	seeds               atomic.Uint64
}

// lateBy is how much later a late datagram is sent.
const lateBy = 2 * time.Millisecond

// listen opens a UDP socket. Every other one damages what it sends.
func (d *datagrams) listen(ctx context.Context, network, address string) (net.PacketConn, error) {
	var lc net.ListenConfig
	c, err := lc.ListenPacket(ctx, network, address)
	n := d.seeds.Add(1)
	if err != nil || n%2 == 0 {
		return c, err
	}
	return &badSocket{PacketConn: c, count: d, rnd: rand.New(rand.NewPCG(n, 0))}, nil
}

// A badSocket damages some of the datagrams that it sends.
type badSocket struct {
	net.PacketConn
	count *datagrams

	mu  sync.Mutex
	rnd *rand.Rand
}

// WriteTo sends a datagram, loses or corrupts it, or sends it later.
func (s *badSocket) WriteTo(b []byte, to net.Addr) (int, error) {
	s.mu.Lock()
	lot, at := s.rnd.IntN(1000), s.rnd.IntN(max(len(b), 1))
	s.mu.Unlock()
	switch {
	case lot < 3:
		s.count.lost.Add(1)
		return len(b), nil
	case lot < 6 && len(b) > 0:
		s.count.corrupt.Add(1)
		bad := bytes.Clone(b)
		bad[at] ^= 0x04
		return s.PacketConn.WriteTo(bad, to)
	case lot < 30:
		s.count.late.Add(1)
		later := bytes.Clone(b)
		time.AfterFunc(lateBy, func() { _, _ = s.PacketConn.WriteTo(later, to) }) // the socket may be closed
		return len(b), nil
	}
	return s.PacketConn.WriteTo(b, to)
}
