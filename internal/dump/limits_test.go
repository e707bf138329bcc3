package dump

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/pcap"
)

// flood gives a Decoder n segments.
func flood(d *Decoder, n int, s func(i int) pcap.Segment) (records int) {
	for i := range n {
		x := s(i)
		x.Dst = netip.MustParseAddrPort("10.0.0.2:7471")
		records += len(d.Packet(pcap.Packet{Number: i + 1, Link: pcap.LinkRaw, Data: x.Append(nil)}))
	}
	return records
}

func source(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 40000)
}

func TestConnectionsAreLimited(t *testing.T) {
	d := New(Config{})
	flood(d, 3*MaxConnections, func(i int) pcap.Segment { return pcap.Segment{Src: source(i), Seq: 1, Flags: pcap.SYN} })
	require.Len(t, d.conns, MaxConnections)
}

// TestHeldOctetsAreLimited: per direction, and in total.
func TestHeldOctetsAreLimited(t *testing.T) {
	d := New(Config{})
	flood(d, 5000, func(i int) pcap.Segment { // after a hole that is never filled
		return pcap.Segment{Src: source(0), Seq: uint32(1 + min(i, 1)*1000 + i*1400), Flags: pcap.ACK, Payload: make([]byte, 1400)}
	})
	require.LessOrEqual(t, d.held, MaxOutOfOrder+2*pieceCost+1<<17)

	d = New(Config{})
	flood(d, 9000, func(i int) pcap.Segment {
		return pcap.Segment{Src: source(i / 3), Seq: uint32(1 + i%3*40000), Flags: pcap.ACK, Payload: make([]byte, 30000)}
	})
	require.LessOrEqual(t, d.held, MaxHeld)
	d.End()
	require.Zero(t, d.held)
}

// TestHeldIsCounted: the Decoder's count is what it holds.
func TestHeldIsCounted(t *testing.T) {
	d := New(Config{})
	request := append([]byte(requestKey), 0x40, 1, 0, 0)
	reply := append([]byte(replyKey), 0x40, 1, 0, 0)
	a, b := source(1), netip.MustParseAddrPort("10.0.0.2:7471")
	number := 0
	packet := func(s pcap.Segment) {
		number++
		d.Packet(pcap.Packet{Number: number, Link: pcap.LinkRaw, Data: s.Append(nil)})
	}
	packet(pcap.Segment{Src: a, Dst: b, Seq: 0, Flags: pcap.SYN})
	packet(pcap.Segment{Src: a, Dst: b, Seq: 1, Payload: request})
	packet(pcap.Segment{Src: a, Dst: b, Seq: 21, Payload: make([]byte, 100)}) // early
	require.Equal(t, 100, d.held)
	packet(pcap.Segment{Src: a, Dst: b, Seq: 200, Payload: make([]byte, 10)})
	require.Equal(t, 110+pieceCost, d.held)
	packet(pcap.Segment{Src: b, Dst: a, Seq: 1, Payload: reply})
	require.LessOrEqual(t, d.held, 110+pieceCost)
	packet(pcap.Segment{Src: a, Dst: b, Seq: 121, Flags: pcap.RST})
	require.Zero(t, d.held)
}

// TestHelloAlone: rma is recognised by a Hello.
func TestHelloAlone(t *testing.T) {
	good := make([]byte, 80)
	good[0], good[1], good[5] = 1, 1, 80
	binary.BigEndian.PutUint32(good[28:], 4096)
	require.True(t, isHello(good))
	for _, at := range []int{0, 1, 2, 3, 5, 7, 15, 23, 28, 34} {
		bad := append([]byte(nil), good...)
		bad[at] += 2
		require.False(t, isHello(bad), fmt.Sprintf("octet %d", at))
	}
	require.False(t, isHello(good[:79]))
}
