package program

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// heldFor is how long a datagram is held back if no other one overtakes it.
const heldFor = 300 * time.Microsecond

// shuffled opens UDP sockets that send some of their datagrams late, in an order that the seed
// chooses. SCTP takes the segments of DDP in any order (RFC 5043 section 6).
func shuffled(seed uint64) func(ctx context.Context, network, address string) (net.PacketConn, error) {
	return func(ctx context.Context, network, address string) (net.PacketConn, error) {
		var lc net.ListenConfig
		c, err := lc.ListenPacket(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &shuffledConn{PacketConn: c, rnd: rand.New(rand.NewPCG(seed, 0))}, nil
	}
}

type shuffledConn struct {
	net.PacketConn

	mu   sync.Mutex
	rnd  *rand.Rand
	held *heldPacket
}

type heldPacket struct {
	b     []byte
	to    net.Addr
	timer *time.Timer
}

// WriteTo sends a datagram, or holds it back until the next one was sent.
func (c *shuffledConn) WriteTo(b []byte, to net.Addr) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil && c.rnd.IntN(3) == 0 {
		c.held = &heldPacket{b: append([]byte(nil), b...), to: to}
		c.held.timer = time.AfterFunc(heldFor, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.release()
		})
		return len(b), nil
	}
	n, err := c.PacketConn.WriteTo(b, to)
	c.release()
	return n, err
}

// release sends what is held back. The caller holds the mutex.
func (c *shuffledConn) release() {
	if c.held != nil {
		c.held.timer.Stop()
		_, _ = c.PacketConn.WriteTo(c.held.b, c.held.to) // a datagram may be lost
		c.held = nil
	}
}

// Close closes the socket.
func (c *shuffledConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release()
	return c.PacketConn.Close()
}
