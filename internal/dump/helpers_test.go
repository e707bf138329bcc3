package dump_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp/internal/crc32c"
	"github.com/goiwarp/iwarp/internal/dump"
	"github.com/goiwarp/iwarp/internal/octettest"
	"github.com/goiwarp/iwarp/internal/pcap"
)

var unhex = octettest.Hex

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	client = netip.MustParseAddrPort("[2001:db8::1]:40000")
	server = netip.MustParseAddrPort("[2001:db8::2]:7471")
)

// frame returns a Request or Reply: flags, revision, length and private data.
func frame(kind, rest string) []byte { return append([]byte("MPA ID "+kind+" Frame"), unhex(rest)...) }

// send returns a segment of a Send.
func send(msn uint32, payload []byte) []byte {
	b := append(unhex("4143 00000000 00000000"), 0, 0, 0, 0, 0, 0, 0, 0)
	binary.BigEndian.PutUint32(b[10:], msn)
	return append(b, payload...)
}

// fpdu appends an FPDU to what one side has sent in Full Operation.
func fpdu(sent, segment []byte, markers bool) []byte {
	body := append(binary.BigEndian.AppendUint16(nil, uint16(len(segment))), segment...)
	body = append(body, make([]byte, -len(body)&3)...)
	start, header := len(sent), -1
	marker := func() {
		if markers && len(sent)%512 == 0 {
			back := 0
			if header >= 0 {
				back = len(sent) - header
			}
			sent = binary.BigEndian.AppendUint32(sent, uint32(back))
		}
	}
	for ; len(body) > 0; body = body[4:] {
		marker()
		if header < 0 {
			header = len(sent)
		}
		sent = append(sent, body[:4]...)
	}
	marker()
	return binary.LittleEndian.AppendUint32(sent, crc32c.Checksum(sent[start:]))
}

// A tape is a capture built packet by packet.
type tape struct {
	file bytes.Buffer
	w    *pcap.Writer
	now  time.Time
	next [2]uint32 // sequence numbers of the client and of the server
}

func newTape() *tape {
	tp := &tape{now: time.Unix(1, 0), next: [2]uint32{0xfffffff0, 77}}
	tp.w, _ = pcap.NewWriter(&tp.file) // a bytes.Buffer takes all
	return tp
}

func (tp *tape) segment(from int, seq uint32, flags pcap.Flags, payload []byte) {
	s := pcap.Segment{Src: client, Dst: server, Seq: seq, Ack: tp.next[1-from], Flags: flags, Payload: payload}
	if from == 1 {
		s.Src, s.Dst = server, client
	}
	tp.now = tp.now.Add(time.Millisecond)
	if err := tp.w.WriteSegment(tp.now, &s); err != nil {
		panic(err)
	}
}

// opens writes the handshake of TCP, and then the two frames of MPA.
func (tp *tape) opens(request, reply []byte) *tape {
	tp.segment(0, tp.next[0]-1, pcap.SYN, nil)
	tp.segment(1, tp.next[1]-1, pcap.SYN|pcap.ACK, nil)
	return tp.says(0, request).says(1, reply)
}

// says writes octets in order, in segments of up to 1400 octets.
func (tp *tape) says(from int, b []byte) *tape {
	for len(b) > 0 {
		n := min(len(b), 1400)
		tp.segment(from, tp.next[from], pcap.ACK, b[:n])
		tp.next[from] += uint32(n)
		b = b[n:]
	}
	return tp
}

// drops skips octets that the capture lacks.
func (tp *tape) drops(from, n int) *tape {
	tp.next[from] += uint32(n)
	return tp
}

// all returns the records of a capture. None of them may print as empty text.
func all(t testing.TB, capture []byte, cfg dump.Config) ([]dump.Record, error) {
	var records []dump.Record
	err := dump.Capture(bytes.NewReader(capture), cfg, func(r []dump.Record) error {
		records = append(records, r...)
		return nil
	})
	return records, err
}

// lines returns the records as text.
func lines(t testing.TB, capture []byte, cfg dump.Config) []string {
	records, err := all(t, capture, cfg)
	require.NoError(t, err)
	var p dump.Printer
	var text []string
	for i := range records {
		text = append(text, p.Line(&records[i]))
	}
	return text
}

const (
	plain   = "00 01 0000" // revision 1, without CRCs and Markers
	withCRC = "40 01 0000"
	markers = "c0 01 0000"
)
