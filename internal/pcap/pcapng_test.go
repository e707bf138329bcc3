package pcap

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// appendBlock appends a block of pcapng: type, length, body, length.
func appendBlock(file []byte, order byteOrder, kind uint32, body []byte) []byte {
	body = append(body, make([]byte, -len(body)&3)...)
	file = order.AppendUint32(file, kind)
	file = order.AppendUint32(file, uint32(len(body)+blockEnds))
	return order.AppendUint32(append(file, body...), uint32(len(body)+blockEnds))
}

// ngFile has two interfaces, a block of unknown type, a packet of each kind, and another section.
func ngFile(order byteOrder) []byte {
	section := append(order.AppendUint32(nil, sectionMagic), make([]byte, 12)...)
	file := appendBlock(nil, order, blockSection, section)
	describe := func(link LinkType, snap uint32, options ...byte) []byte {
		b := order.AppendUint16(nil, uint16(link))
		return append(order.AppendUint32(append(b, 0, 0), snap), options...)
	}
	nano := append(order.AppendUint16(order.AppendUint16(nil, optionResolution), 1), 9, 0, 0, 0)
	file = appendBlock(file, order, blockInterface, describe(LinkRaw, 2))
	file = appendBlock(file, order, blockInterface, describe(LinkEthernet, 0, nano...))
	file = appendBlock(file, order, 0xbad, []byte("skipped"))
	file = appendBlock(file, order, blockSimple, append(order.AppendUint32(nil, 9), "abc"...))
	enhanced := order.AppendUint32(nil, 1)
	ticks := uint64(5*time.Second + 6)
	for _, v := range []uint32{uint32(ticks >> 32), uint32(ticks), 3, 9} {
		enhanced = order.AppendUint32(enhanced, v)
	}
	file = appendBlock(file, order, blockEnhanced, append(enhanced, "xyz"...))
	return appendBlock(file, order, blockSection, section)
}

func TestReaderTakesPcapng(t *testing.T) {
	for _, order := range []byteOrder{binary.LittleEndian, binary.BigEndian} {
		file := ngFile(order)
		r, err := NewReader(bytes.NewReader(file))
		require.NoError(t, err)
		p, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, Packet{Link: LinkRaw, Number: 1, Offset: 96, Data: []byte("ab")}, p, "no more than the interface keeps")
		p, err = r.Next()
		require.NoError(t, err)
		require.Equal(t, Packet{Time: time.Unix(5, 6), Link: LinkEthernet, Number: 2, Offset: 116, Data: []byte("xyz")}, p)
		_, err = r.Next()
		require.Equal(t, io.EOF, err)

		for n := range len(file) {
			r, err := NewReader(bytes.NewReader(file[:n]))
			for err == nil {
				_, err = r.Next()
			}
			if !errors.Is(err, io.EOF) {
				require.ErrorContains(t, err, "octet", "%d octets", n)
			}
		}
	}
}

// TestTimesOfPcapng: an interface defines the resolution and the offset of its times.
func TestTimesOfPcapng(t *testing.T) {
	le := binary.LittleEndian
	option := func(code uint16, value ...byte) []byte {
		b := le.AppendUint16(le.AppendUint16(nil, code), uint16(len(value)))
		return append(append(b, value...), make([]byte, -len(value)&3)...)
	}
	offset := func(seconds int64) []byte { return option(14, le.AppendUint64(nil, uint64(seconds))...) }
	for name, c := range map[string]struct {
		options []byte
		units   uint64
		want    time.Time
	}{
		"microseconds":                {nil, 5_000_006, time.Unix(5, 6000)},
		"nanoseconds":                 {option(9, 9), 5_000_000_006, time.Unix(5, 6)},
		"picoseconds":                 {option(9, 12), 5_000_000_006_999, time.Unix(5, 6)},
		"a power of two":              {option(9, 0x80|62), 5<<62>>2 | 1<<61, time.Unix(1, 750_000_000)},
		"what cannot be counted":      {option(9, 20), 5_000_006, time.Unix(5, 6000)},
		"an offset":                   {offset(1_700_000_000), 5_000_006, time.Unix(1_700_000_005, 6000)},
		"an offset behind others":     {append(option(9, 0), offset(-3)...), 5, time.Unix(2, 0)},
		"the last":                    {option(9, 0), lastSecond, time.Unix(lastSecond, 0)},
		"one more":                    {option(9, 0), lastSecond + 1, time.Time{}},
		"the most":                    {option(9, 0), 1<<64 - 1, time.Time{}},
		"more than that by an offset": {append(option(9, 0), offset(1<<63-1)...), 1<<63 - 1, time.Time{}},
		"less by an offset":           {offset(-1 << 63), 0, time.Time{}},
	} {
		file := appendBlock(nil, le, blockSection, append(le.AppendUint32(nil, sectionMagic), make([]byte, 12)...))
		file = appendBlock(file, le, blockInterface, append([]byte{101, 0, 0, 0, 0, 0, 0, 0}, c.options...))
		packet := le.AppendUint32(make([]byte, 4), uint32(c.units>>32))
		file = appendBlock(file, le, blockEnhanced, append(le.AppendUint32(packet, uint32(c.units)), make([]byte, 8)...))
		r, err := NewReader(bytes.NewReader(file))
		require.NoError(t, err)
		p, err := r.Next()
		require.NoError(t, err, name)
		require.True(t, c.want.Equal(p.Time), "%s: %v", name, p.Time)
		_, err = json.Marshal(p.Time)
		require.NoError(t, err, name)
	}
}

// TestLargeBlocksArePassedOver: a block that is not a packet, such as TLS secrets, may be of any size.
func TestLargeBlocksArePassedOver(t *testing.T) {
	const secrets = 10
	le := binary.LittleEndian
	file := appendBlock(nil, le, blockSection, append(le.AppendUint32(nil, sectionMagic), make([]byte, 12)...))
	file = appendBlock(file, le, blockInterface, []byte{101, 0, 0, 0, 0, 0, 0, 0})
	file = appendBlock(file, le, secrets, make([]byte, 1<<20))
	whole := appendBlock(file, le, blockSimple, append(le.AppendUint32(nil, 1), 'x'))
	r, err := NewReader(bytes.NewReader(whole))
	require.NoError(t, err)
	p, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, "x", string(p.Data))
	_, err = r.Next()
	require.Equal(t, io.EOF, err)

	r, err = NewReader(bytes.NewReader(file[:len(file)-1]))
	require.NoError(t, err)
	_, err = r.Next()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)

	large := appendBlock(file[:48:48], le, blockEnhanced, make([]byte, 1<<20))
	r, err = NewReader(bytes.NewReader(large))
	require.NoError(t, err)
	_, err = r.Next()
	require.ErrorIs(t, err, errBlock, "a packet is no larger than one can be")
}

func TestReaderRefusesPcapng(t *testing.T) {
	file := ngFile(binary.LittleEndian)
	for name, c := range map[string]struct {
		at   int
		want string
	}{
		"magic":     {8, "its section header has the octets"},
		"length":    {28 + 4, "whose length cannot be"},
		"interface": {116 + 8, "interface 65281, which the capture does not describe"},
		"size":      {116 + 21, "octets in a block of"},
	} {
		bad := bytes.Clone(file)
		bad[c.at+1] = 0xff
		if name == "magic" || name == "length" {
			bad[c.at] = 0xff
		}
		r, err := NewReader(bytes.NewReader(bad))
		for err == nil {
			_, err = r.Next()
		}
		require.ErrorContains(t, err, c.want, name)
	}
}

func TestParseIPLooksThroughHeaders(t *testing.T) {
	s := Segment{Src: clientAddr, Dst: serverAddr, Payload: []byte("x")}
	frame := append(make([]byte, 12), 0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 0x08, 0)
	got, err := Parse(LinkEthernet, append(frame, s.Append(nil)...))
	require.NoError(t, err)
	require.Equal(t, s, got, "behind two VLAN tags")

	ip, err := ParseIP(LinkRaw, s.Append(nil)[:25])
	require.NoError(t, err)
	require.Equal(t, 16, ip.Missing)
	_, err = Parse(LinkRaw, s.Append(nil)[:25])
	require.Equal(t, errShort, err)

	six := append([]byte{0x60, 0, 0, 0, 0, 17, hopByHop, 1}, make([]byte, 32)...)
	six = append(six, destination, 0, 0, 0, 0, 0, 0, 0)
	six = append(six, 132, 0, 0, 0, 0, 0, 0, 0, 'x')
	ip, err = ParseIP(LinkRaw, six)
	require.NoError(t, err)
	require.Equal(t, byte(132), ip.Protocol)
	require.Equal(t, "x", string(ip.Payload))
	six[6] = fragment // instead of the options: the first fragment is the whole packet
	whole := append(bytes.Clone(six[:40]), 132, 0xff, 0, 6, 0, 0, 0, 9, 'x')
	ip, err = ParseIP(LinkRaw, whole)
	require.NoError(t, err)
	require.False(t, ip.Fragment, "RFC 8200 section 4.5")
	require.Equal(t, byte(132), ip.Protocol)
	require.Equal(t, "x", string(ip.Payload))
	for _, part := range []byte{1, 8} { // more fragments follow; it is not the first
		whole[43] = part
		ip, err = ParseIP(LinkRaw, whole)
		require.NoError(t, err)
		require.True(t, ip.Fragment)
		require.Equal(t, byte(132), ip.Protocol, "that of the packet, as in a fragment of IPv4")
	}
	_, err = ParseIP(LinkRaw, whole[:47])
	require.Equal(t, errShort, err)
	six[6], six[41] = routing, 9
	_, err = ParseIP(LinkRaw, six)
	require.Equal(t, errShort, err)
	require.False(t, LinkType(147).Known())
	require.True(t, LinkSLL2.Known())
}
