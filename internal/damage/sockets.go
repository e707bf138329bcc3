package damage

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/crc32c"
)

// A ListenFunc opens a socket, as net.ListenConfig.ListenPacket does.
type ListenFunc func(ctx context.Context, network, address string) (net.PacketConn, error)

// Sockets are the sockets of the two hosts of a connection.
type Sockets struct {
	listen ListenFunc

	mu     sync.Mutex
	left   [2]int // datagrams of each host that still pass; -1: all
	passed [2]int // since Arm
	how    string
	state  [2]string // what happens to all datagrams that a host sends now: HalfClose, Address or nothing
	more   []net.PacketConn
}

// NewSockets returns Sockets that are opened by listen, or by the system if listen is nil.
func NewSockets(listen ListenFunc) *Sockets {
	if listen == nil {
		listen = new(net.ListenConfig).ListenPacket
	}
	return &Sockets{listen: listen, left: [2]int{-1, -1}}
}

// Listen returns a function for Config.ListenPacket of a host.
func (s *Sockets) Listen(side int) ListenFunc {
	return func(ctx context.Context, network, address string) (net.PacketConn, error) {
		c, err := s.listen(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &socket{PacketConn: c, all: s, side: side}, nil
	}
}

// Arm makes how happen after datagrams more datagrams of a host have passed.
func (s *Sockets) Arm(side, datagrams int, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left[side], s.how = datagrams, how
	s.passed = [2]int{}
}

// Disarm lets everything pass again.
func (s *Sockets) Disarm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.state = [2]int{-1, -1}, [2]string{}
}

// Passed returns how many datagrams of a host have passed since Arm.
func (s *Sockets) Passed(side int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.passed[side]
}

// Close closes the sockets of other addresses.
func (s *Sockets) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.more {
		_ = c.Close()
	}
	s.more = nil
}

// happens returns what happens to the next datagram of a host.
func (s *Sockets) happens(side int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state[side] != "":
		return s.state[side]
	case s.left[side] != 0:
		s.left[side] = max(s.left[side]-1, -1)
		s.passed[side]++
		return ""
	}
	s.left[side] = -1
	switch s.how {
	case Vanish:
		s.state = [2]string{HalfClose, HalfClose}
		return HalfClose
	case HalfClose, Address:
		s.state[side] = s.how
	}
	return s.how
}

// elsewhere returns a socket with another address, nil if there is none.
func (s *Sockets) elsewhere(address string) net.PacketConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.more) == 0 {
		host, _, _ := net.SplitHostPort(address)
		c, err := s.listen(context.Background(), "udp", net.JoinHostPort(host, "0"))
		if err != nil {
			return nil
		}
		s.more = append(s.more, c)
	}
	return s.more[0]
}

// A socket is a socket of a host.
type socket struct {
	net.PacketConn
	all  *Sockets
	side int
}

// WriteTo sends a datagram, or what the damage makes of it.
func (s *socket) WriteTo(b []byte, to net.Addr) (int, error) {
	switch s.all.happens(s.side) {
	case HalfClose, Lose:
		return len(b), nil
	case Abort:
		_, err := s.PacketConn.WriteTo(abort(b), to)
		return len(b), err
	case Corrupt:
		bad := bytes.Clone(b)
		bad[len(bad)-1] ^= 0x10
		return s.PacketConn.WriteTo(bad, to)
	case Stall:
		late := bytes.Clone(b)
		time.AfterFunc(For, func() { _, _ = s.PacketConn.WriteTo(late, to) }) // the socket may be closed
		return len(b), nil
	case Address:
		if c := s.all.elsewhere(s.LocalAddr().String()); c != nil {
			return c.WriteTo(b, to)
		}
	}
	return s.PacketConn.WriteTo(b, to)
}

// abort returns a packet that a host on the path could forge: an SCTP packet with the ports and the verification tag of another
// packet, and an ABORT chunk without a cause (RFC 9260 section 3.3.7).
func abort(packet []byte) []byte {
	const header = 12 // the checksum is its last part
	if len(packet) < header {
		return nil
	}
	p := append(bytes.Clone(packet[:8]), 0, 0, 0, 0, 6, 0, 0, 4)
	binary.LittleEndian.PutUint32(p[8:], crc32c.Checksum(p))
	return p
}
