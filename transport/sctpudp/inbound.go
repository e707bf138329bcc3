package sctpudp

import "sync"

const (
	// inboundQueue is how many packets of an association may wait for pion, inboundOctets how much memory
	// they may take: as many as a peer may send into a receive buffer of receiveBuffer octets, where a
	// packet fits the frame of an Ethernet. More are lost.
	inboundQueue  = 1024
	inboundOctets = 2 << 20
	// smallPacket is the largest packet that does not wait in a buffer of maxPacket.
	smallPacket = 2048
)

var smallPackets = sync.Pool{New: func() any { return new([smallPacket]byte) }}

// An inbound is a packet of the peer, in one of the two buffers. One without a packet is a nudge.
type inbound struct {
	buf   *[maxPacket]byte
	small *[smallPacket]byte
	n     int
}

// newInbound returns the packet in buf, or a copy of it where it is small.
func newInbound(buf *[maxPacket]byte, n int) inbound {
	if n == 0 || n > smallPacket {
		return inbound{buf: buf, n: n}
	}
	small := smallPackets.Get().(*[smallPacket]byte)
	copy(small[:], buf[:n])
	return inbound{small: small, n: n}
}

func (b inbound) octets() []byte {
	if b.small != nil {
		return b.small[:b.n]
	}
	return b.buf[:b.n]
}

// memory is how much of inboundOctets it takes.
func (b inbound) memory() int64 {
	switch {
	case b.n == 0:
		return 0
	case b.small != nil:
		return smallPacket
	}
	return maxPacket
}

// push takes a packet of the peer. It reports true if buf is no longer the caller's.
func (a *association) push(buf *[maxPacket]byte, n int) bool {
	b := newInbound(buf, n)
	if a.queued.Add(b.memory()) <= inboundOctets {
		select {
		case a.in <- b:
			if b.small != nil {
				packets.Put(buf)
			}
			return true
		default:
		}
	}
	a.queued.Add(-b.memory())
	if b.small != nil {
		smallPackets.Put(b.small)
	}
	return false
}

// release gives back the memory of a packet that waits no more.
func (a *association) release(b inbound) {
	a.queued.Add(-b.memory())
	if b.small != nil {
		smallPackets.Put(b.small)
	} else if b.buf != nil {
		packets.Put(b.buf)
	}
}
