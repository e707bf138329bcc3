package wiretest

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// A PacketNetwork carries datagrams within the process, and can be as unreliable as real
// networks. It can be used within a testing/synctest bubble.
type PacketNetwork struct {
	loss float64 // the share that is lost; the same share arrives twice, and the same share late

	mu    sync.Mutex
	rnd   *rand.Rand
	conns map[netip.AddrPort]*packetConn
	port  uint16
	lost  int // datagrams
}

// NewPacketNetwork makes a network that loses a share of the datagrams, chosen by the seed.
func NewPacketNetwork(loss float64, seed uint64) *PacketNetwork {
	return &PacketNetwork{
		loss: loss,
		rnd:  rand.New(rand.NewPCG(seed, 0)), conns: make(map[netip.AddrPort]*packetConn),
	}
}

// ListenPacket can be used as Config.ListenPacket.
func (n *PacketNetwork) ListenPacket(_ context.Context, _, address string) (net.PacketConn, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if at.Port() == 0 {
		n.port++
		at = netip.AddrPortFrom(at.Addr(), 20000+n.port)
	}
	c := &packetConn{network: n, at: at, in: make(chan datagram, 512), closed: make(chan struct{})}
	n.conns[at] = c
	return c, nil
}

type datagram struct {
	b    []byte
	from netip.AddrPort
}

type packetConn struct {
	network *PacketNetwork
	at      netip.AddrPort
	in      chan datagram
	closed  chan struct{}
	once    sync.Once
}

func (c *packetConn) ReadFrom(p []byte) (int, net.Addr, error) {
	select {
	case d := <-c.in:
		return copy(p, d.b), net.UDPAddrFromAddrPort(d.from), nil
	case <-c.closed:
		return 0, nil, net.ErrClosed
	}
}

func (c *packetConn) WriteTo(p []byte, addr net.Addr) (int, error) {
	select {
	case <-c.closed:
		return 0, net.ErrClosed
	default:
	}
	n := c.network
	to := addr.(*net.UDPAddr).AddrPort()
	d := datagram{append([]byte(nil), p...), c.at}
	if n.loss == 0 {
		n.carry(d, to)
		return len(p), nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rnd.Float64() < n.loss {
		n.lost++
		return len(p), nil
	}
	delay := packetDelay
	if n.rnd.Float64() < n.loss {
		delay *= 10
	}
	time.AfterFunc(delay, func() { n.carry(d, to) })
	if n.rnd.Float64() < n.loss {
		time.AfterFunc(delay, func() { n.carry(d, to) })
	}
	return len(p), nil
}

// packetDelay is how long a datagram takes if some are lost. SCTP detects a loss by the
// time that others take.
const packetDelay = 50 * time.Microsecond

// Lost returns how many datagrams were lost.
func (n *PacketNetwork) Lost() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lost
}

// carry delivers a datagram. If no socket has the address, or it has no room, the datagram is lost.
func (n *PacketNetwork) carry(d datagram, to netip.AddrPort) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.conns[to]; c != nil {
		select {
		case c.in <- d:
		default:
		}
	}
}

func (c *packetConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.network.mu.Lock()
		defer c.network.mu.Unlock()
		delete(c.network.conns, c.at)
	})
	return nil
}

func (c *packetConn) LocalAddr() net.Addr              { return net.UDPAddrFromAddrPort(c.at) }
func (c *packetConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (c *packetConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (c *packetConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
