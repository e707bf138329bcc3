package sctpudp

import "sync"

const (
	// inboundQueue is how many packets of an association may wait for pion, and inboundOctets how much
	// memory they may take: as many as a peer may send into a receive buffer of receiveBuffer octets, if
	// each packet fits in an Ethernet frame. More packets are lost.
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

// newInbound returns the packet in buf, or a copy if it is small.
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

// memory returns how much of inboundOctets the packet takes.
func (b inbound) memory() int64 {
	switch {
	case b.n == 0:
		return 0
	case b.small != nil:
		return smallPacket
	}
	return maxPacket
}

// push queues a packet of the peer. It reports true if buf no longer belongs to the caller.
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

// release releases the memory of a packet that no longer waits.
func (a *association) release(b inbound) {
	a.queued.Add(-b.memory())
	if b.small != nil {
		smallPackets.Put(b.small)
	} else if b.buf != nil {
		packets.Put(b.buf)
	}
}
