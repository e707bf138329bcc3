package pcap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	clientAddr = netip.MustParseAddrPort("192.0.2.1:1000")
	serverAddr = netip.MustParseAddrPort("192.0.2.2:2000")
)

func TestSegmentGolden(t *testing.T) {
	s := Segment{Src: clientAddr, Dst: serverAddr, Seq: 0x01020304, Ack: 0x05060708, Flags: PSH | ACK, Payload: []byte("abc")}
	require.Equal(t, []byte{
		0x45, 0, 0, 43, // version, header length, DSCP, total length
		0, 0, 0x40, 0, // identification, do not fragment
		64, 6, 0xb6, 0xc9, // hops, TCP, checksum
		192, 0, 2, 1,
		192, 0, 2, 2,
		0x03, 0xe8, 0x07, 0xd0, // ports
		1, 2, 3, 4, // sequence number
		5, 6, 7, 8, // acknowledgment number
		0x50, 0x18, 0xff, 0xff, // header length, flags, window
		0x4b, 0x97, 0, 0, // checksum, urgent pointer
		'a', 'b', 'c',
	}, s.Append(nil), "a segment over IPv4")
}

func TestSegmentRoundTrip(t *testing.T) {
	for _, addrs := range [][2]string{
		{"192.0.2.1:1", "198.51.100.200:65535"},
		{"[2001:db8::1]:1", "[2001:db8::ffff]:65535"},
	} {
		s := Segment{
			Src: netip.MustParseAddrPort(addrs[0]), Dst: netip.MustParseAddrPort(addrs[1]),
			Seq: 0xdeadbeef, Ack: 7, Flags: SYN | ACK, Payload: bytes.Repeat([]byte{0xff, 1}, MaxPayload/2),
		}
		packet := s.Append([]byte("kept"))
		require.Equal(t, "kept", string(packet[:4]), "Append appends")
		packet = packet[4:]
		got, err := Parse(LinkRaw, packet)
		require.NoError(t, err, "the packet is parsed")
		require.Equal(t, s, got, "the segment is the same")

		header := len(packet) - len(s.Payload) - tcpLen
		pseudo := sumAddr(s.Src.Addr()) + sumAddr(s.Dst.Addr()) + protTCP + uint32(len(packet)-header)
		require.Zero(t, checksum(pseudo, packet[header:]), "the TCP checksum is right")
		for n := range header + tcpLen {
			_, err := Parse(LinkRaw, packet[:n])
			require.Error(t, err, "a packet of %d octets is cut short", n)
		}
	}
}

func TestParseLinks(t *testing.T) {
	s := Segment{Src: clientAddr, Dst: serverAddr, Payload: []byte("x")}
	packet := s.Append(nil)
	for _, link := range []struct {
		typ         LinkType
		size, etype int
	}{{LinkEthernet, 14, 12}, {LinkSLL, 16, 14}, {LinkSLL2, 20, 0}} {
		frame := append(make([]byte, link.size), packet...)
		binary.BigEndian.PutUint16(frame[link.etype:], 0x0800)
		got, err := Parse(link.typ, frame)
		require.NoError(t, err, "link %d is known", link.typ)
		require.Equal(t, s, got, "the segment is found after the header of link %d", link.typ)
		_, err = Parse(link.typ, frame[:link.size-1])
		require.Equal(t, errShort, err, "the header of link %d may be cut short", link.typ)
		binary.BigEndian.PutUint16(frame[link.etype:], 0x0806)
		_, err = Parse(link.typ, frame)
		require.Equal(t, errNotTCP, err, "ARP is not TCP")
	}
	_, err := Parse(147, packet)
	require.Equal(t, errNotTCP, err, "an unknown link is skipped")
}

// TestParseLoopback: BSD's loopback has a family before the IP packet, in the machine's octet order. Others have
// nothing.
func TestParseLoopback(t *testing.T) {
	s := Segment{Src: clientAddr, Dst: serverAddr, Payload: []byte("x")}
	packet := s.Append(nil)
	for link, head := range map[LinkType][]byte{LinkNull: {2, 0, 0, 0}, LinkLoop: {0, 0, 0, 2}, LinkIPv4: nil, LinkIPv6: nil} {
		require.True(t, link.Known(), "link %d", link)
		frame := append(bytes.Clone(head), packet...)
		got, err := Parse(link, frame)
		require.NoError(t, err, "link %d", link)
		require.Equal(t, s, got, "link %d", link)
		for n := range len(head) + 1 {
			_, err = Parse(link, frame[:n])
			require.Equal(t, errShort, err, "%d octets of link %d", n, link)
		}
	}
	_, err := Parse(LinkNull, []byte{7, 0, 0, 0, 0x81}) // OSI
	require.Equal(t, errNotTCP, err)
}

func TestReaderTakesAllForms(t *testing.T) {
	for _, order := range []interface {
		binary.ByteOrder
		binary.AppendByteOrder
	}{binary.LittleEndian, binary.BigEndian} {
		for magic, want := range map[uint32]time.Time{
			magicMicro: time.Unix(5, 6000),
			magicNano:  time.Unix(5, 6),
		} {
			file := order.AppendUint32(nil, magic)
			file = append(file, make([]byte, 16)...)
			file = order.AppendUint32(file, uint32(LinkSLL2))
			for _, v := range []uint32{5, 6, 3, 100} { // seconds, fraction, captured, on the wire
				file = order.AppendUint32(file, v)
			}
			file = append(file, "abc"...)
			r, err := NewReader(bytes.NewReader(file))
			require.NoError(t, err, "the header is read")
			p, err := r.Next()
			require.NoError(t, err, "the packet is read")
			require.Equal(t, Packet{Time: want, Link: LinkSLL2, Number: 1, Offset: fileHeaderLen, Data: []byte("abc")}, p, "time and octets are right")
			_, err = r.Next()
			require.Equal(t, io.EOF, err, "the end of the file")
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	_, err := NewReader(bytes.NewReader(make([]byte, fileHeaderLen)))
	require.ErrorIs(t, err, errFormat, "another format")
	_, err = NewReader(bytes.NewReader(make([]byte, 3)))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "a file without header")

	var file bytes.Buffer
	w, err := NewWriter(&file)
	require.NoError(t, err, "the header is written")
	require.NoError(t, w.WriteSegment(time.Unix(1, 1), &Segment{Src: clientAddr, Dst: serverAddr}), "a packet is written")
	whole := file.Bytes()
	for n := fileHeaderLen + 1; n < len(whole); n++ {
		_, err := Streams(bytes.NewReader(whole[:n]))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "a file that ends within a packet, after %d octets", n)
	}
	binary.LittleEndian.PutUint32(whole[fileHeaderLen+8:], snapLen+1)
	_, err = Streams(bytes.NewReader(whole))
	require.ErrorContains(t, err, "262145 octets", "a packet beyond the limit is not allocated")
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriterReportsErrors(t *testing.T) {
	_, err := NewWriter(failing{})
	require.EqualError(t, err, "disk full", "the error is the writer's")
}

func FuzzStreams(f *testing.F) {
	var file bytes.Buffer
	w, err := NewWriter(&file)
	require.NoError(f, err, "the header is written")
	for _, s := range []Segment{
		{Src: clientAddr, Dst: serverAddr, Seq: 1, Flags: SYN},
		{Src: serverAddr, Dst: clientAddr, Seq: 9, Ack: 2, Flags: SYN | ACK},
		{Src: clientAddr, Dst: serverAddr, Seq: 2, Ack: 10, Flags: ACK, Payload: []byte("data")},
	} {
		require.NoError(f, w.WriteSegment(time.Unix(1, 1), &s), "a packet is written")
	}
	f.Add(file.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		streams, err := Streams(bytes.NewReader(b))
		if err != nil {
			return
		}
		for _, s := range streams {
			require.LessOrEqual(t, len(s.ClientBytes)+len(s.ServerBytes), len(b), "no octet is made up")
		}
	})
}
