package sctpudp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPacketsThatWaitForPion: none is lost of what a peer may send into the receive buffer, as long as its packets are those of
// an Ethernet. What they take of memory has the same bound whatever their size.
func TestPacketsThatWaitForPion(t *testing.T) {
	const ethernet, ofHeaders = 1472, headerSize + dataHeaderSize
	for name, c := range map[string]struct{ size, want int }{
		"Ethernet":      {ethernet, inboundQueue},
		"jumbo frames":  {maxPacket, inboundOctets / maxPacket},
		"a little more": {smallPacket + 1, inboundOctets / maxPacket},
		"short ones":    {ofHeaders + 4, inboundQueue},
	} {
		t.Run(name, func(t *testing.T) {
			a := &association{in: make(chan inbound, inboundQueue)}
			for range 2 { // the memory is given back
				taken := 0
				for a.push(new([maxPacket]byte), c.size) {
					taken++
				}
				require.Equal(t, c.want, taken)
				require.LessOrEqual(t, a.queued.Load(), int64(inboundOctets))
				for range taken {
					b := <-a.in
					require.Len(t, b.octets(), c.size)
					a.release(b)
				}
				require.Zero(t, a.queued.Load())
			}
		})
	}
	require.GreaterOrEqual(t, inboundQueue*(ethernet-ofHeaders), receiveBuffer)
}

// TestPacketThatWaitsIsTheOneThatHasCome: its buffer may be used for another one meanwhile.
func TestPacketThatWaitsIsTheOneThatHasCome(t *testing.T) {
	a := &association{in: make(chan inbound, inboundQueue)}
	for _, n := range []int{headerSize, smallPacket, smallPacket + 1, maxPacket} {
		buf := new([maxPacket]byte)
		for i := range n {
			buf[i] = byte(i * n)
		}
		want := append([]byte(nil), buf[:n]...)
		require.True(t, a.push(buf, n))
		if n <= smallPacket {
			clear(buf[:])
		}
		b := <-a.in
		require.Equal(t, want, b.octets())
		a.release(b)
	}
}
