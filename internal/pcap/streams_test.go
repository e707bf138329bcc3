package pcap

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// captures holds tshark's counts for each capture: connections, and the total octets from the client and from the
// server.
var captures = map[string][3]int{
	"ib_atomic_bw.pcap":         {2, 572, 572},
	"ib_read_bw.pcap":           {2, 1412, 42452},
	"ib_send_bw.pcap":           {2, 42412, 828},
	"ib_write_bw.pcap":          {2, 42452, 892},
	"knob_crc.pcap":             {1, 352, 456},
	"knob_crc_strict.pcap":      {1, 352, 456},
	"knob_default.pcap":         {1, 352, 456},
	"knob_gso.pcap":             {1, 352, 456},
	"knob_p2p.pcap":             {1, 372, 456},
	"knob_p2p_crc.pcap":         {1, 372, 456},
	"knob_v1.pcap":              {1, 60, 20},
	"mpa_markers_reject.pcap":   {1, 20, 20},
	"nvme_rdma.pcap":            {3, 74864, 148636},
	"rping.pcap":                {1, 516, 672},
	"rping_64k.pcap":            {1, 266168, 254904}, // up to its holes
	"tcp_mpa_v1.pcap":           {1, 20, 20},
	"tcp_mpa_v2.pcap":           {1, 24, 24},
	"terminate_ddp_bounds.pcap": {1, 2956, 120},
}

func TestStreamsOfCaptures(t *testing.T) {
	for name, want := range captures {
		t.Run(name, func(t *testing.T) {
			f, err := os.Open(filepath.Join("testdata", name))
			require.NoError(t, err, "the capture opens")
			defer f.Close()
			streams, err := Streams(f)
			require.NoError(t, err, "the capture is read")
			var got [3]int
			for _, s := range streams {
				require.Equal(t, "10.1.0.1", s.Client.Addr().String(), "the client is the end that sent the SYN")
				require.Equal(t, name == "rping_64k.pcap", s.ClientHole && s.ServerHole, "packets are missing from one capture")
				got[0]++
				got[1] += len(s.ClientBytes)
				got[2] += len(s.ServerBytes)
			}
			require.Equal(t, want, got, "connections and octets are those that tshark counts")
		})
	}
}

// A talk writes segments of one connection into a capture.
type talk struct {
	t   *testing.T
	buf bytes.Buffer
	w   *Writer
}

func newTalk(t *testing.T) *talk {
	c := &talk{t: t}
	var err error
	c.w, err = NewWriter(&c.buf)
	require.NoError(t, err, "the header is written")
	return c
}

func (c *talk) client(seq uint32, f Flags, payload string) {
	c.put(Segment{Src: clientAddr, Dst: serverAddr, Seq: seq, Flags: f, Payload: []byte(payload)})
}

func (c *talk) server(seq uint32, f Flags, payload string) {
	c.put(Segment{Src: serverAddr, Dst: clientAddr, Seq: seq, Flags: f, Payload: []byte(payload)})
}

func (c *talk) put(s Segment) {
	require.NoError(c.t, c.w.WriteSegment(time.Unix(1, 2), &s), "a segment is written")
}

func (c *talk) want(expectation string, want ...Stream) {
	c.t.Helper()
	got, err := Streams(&c.buf)
	require.NoError(c.t, err, expectation)
	require.Equal(c.t, want, got, expectation)
}

func stream(client, server string) Stream {
	s := Stream{Client: clientAddr, Server: serverAddr}
	if client != "" {
		s.ClientBytes = []byte(client)
	}
	if server != "" {
		s.ServerBytes = []byte(server)
	}
	return s
}

func TestStreamsReassemble(t *testing.T) {
	c := newTalk(t)
	c.client(0xfffffffe, SYN, "")
	c.server(99, SYN|ACK, "")
	c.client(0xffffffff, ACK, "abc")   // the numbers wrap within
	c.client(5, ACK|PSH, "gh")         // early
	c.client(1, ACK|PSH, "cdef")       // overlaps what came before
	c.client(0xffffffff, ACK, "ab")    // again
	c.server(100, ACK|PSH|FIN, "answ") // the other direction
	c.want("segments are put in order, what came twice counts once", stream("abcdefgh", "answ"))
}

func TestStreamsTellConnectionsApart(t *testing.T) {
	c := newTalk(t)
	c.client(9, SYN, "")
	c.client(9, SYN, "") // again
	c.client(10, ACK, "one")
	c.client(500, SYN, "")
	c.client(501, ACK, "two")
	c.want("a SYN with another number begins a new connection of the same ports", stream("one", ""), stream("two", ""))
}

func TestStreamsWithoutSYN(t *testing.T) {
	c := newTalk(t)
	c.server(7, SYN|ACK, "")
	c.server(8, ACK, "s")
	c.client(20, ACK, "c")
	c.want("the end that answers a SYN is the server", stream("c", "s"))
	c = newTalk(t)
	c.client(20, ACK, "c")
	c.server(8, ACK, "s")
	c.want("the end that sends first is the client", stream("c", "s"))
}

func TestStreamsWithAHole(t *testing.T) {
	c := newTalk(t)
	c.client(9, SYN, "")
	c.client(11, ACK, "second octet")
	c.client(10, ACK, "1")
	c.client(40, ACK, "lost")
	s := stream("1second octet", "")
	s.ClientHole = true
	c.want("octets end before a hole, and the hole is told", s)
}

// TestStreamsOfPcapng: there each packet has a link type of its own.
func TestStreamsOfPcapng(t *testing.T) {
	order := binary.LittleEndian
	file := appendBlock(nil, order, blockSection, append(order.AppendUint32(nil, sectionMagic), make([]byte, 12)...))
	file = appendBlock(file, order, blockInterface, order.AppendUint32(order.AppendUint32(nil, uint32(LinkRaw)), 0))
	s := Segment{Src: clientAddr, Dst: serverAddr, Seq: 9, Payload: []byte("octets")}
	packet := s.Append(nil)
	body := append(make([]byte, 12), order.AppendUint32(order.AppendUint32(nil, uint32(len(packet))), uint32(len(packet)))...)
	file = appendBlock(file, order, blockEnhanced, append(body, packet...))
	got, err := Streams(bytes.NewReader(file))
	require.NoError(t, err)
	require.Equal(t, []Stream{stream("octets", "")}, got)
}
