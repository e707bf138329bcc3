package iwarp_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/pcap"
	"github.com/goiwarp/iwarp/stag"
)

// A half is what one end of a captured connection sent.
type half struct {
	frame    []byte   // its MPA Request or Reply
	ulpdus   [][]byte // whole ones
	messages []message
}

// A message is a completely captured message.
type message struct {
	op   byte
	stag stag.STag // of a tagged message, and of a Read Request: the sink
	to   uint64
	data []byte

	src   stag.STag // of a Read Request
	srcTO uint64
	size  uint32

	first, last int // its segments, in half.ulpdus
}

const (
	opWrite    = 0
	opRead     = 1
	opResponse = 2
	opSend     = 3
)

// captured returns the halves of every connection of a capture.
func captured(t testing.TB, name string) (client, server []half) {
	t.Helper()
	f, err := os.Open(filepath.Join("internal", "pcap", "testdata", name))
	require.NoError(t, err)
	defer f.Close()
	streams, err := pcap.Streams(f)
	require.NoError(t, err)
	for _, s := range streams {
		client = append(client, newHalf(t, s.ClientBytes))
		server = append(server, newHalf(t, s.ServerBytes))
	}
	return client, server
}

// newHalf takes the octets of one direction apart, without the library's help. It leaves out an incomplete end.
func newHalf(t testing.TB, b []byte) half {
	t.Helper()
	require.GreaterOrEqual(t, len(b), 20, "there is a frame")
	n := 20 + int(binary.BigEndian.Uint16(b[18:]))
	h := half{frame: b[:n]}
	b = b[n:]
	for len(b) >= 2 {
		n := int(binary.BigEndian.Uint16(b))
		size := 2 + n + -(2+n)&3 + 4
		if len(b) < size {
			break
		}
		h.ulpdus = append(h.ulpdus, b[2:2+n])
		b = b[size:]
	}
	h.assemble()
	return h
}

func (h *half) assemble() {
	open := map[byte]*message{} // kinds of messages may interleave
	for i, u := range h.ulpdus {
		op := u[1] & 0xf
		m := open[op]
		if m == nil {
			m = &message{op: op, first: i}
			open[op] = m
			if isTagged(u) {
				m.stag, m.to = stagAt(u, 2), binary.BigEndian.Uint64(u[6:])
			}
		}
		m.data = append(m.data, u[headerOf(u):]...)
		if u[0]&0x40 == 0 {
			continue
		}
		m.last = i
		if op == opRead {
			m.stag, m.to = stagAt(m.data, 0), binary.BigEndian.Uint64(m.data[4:])
			m.size = binary.BigEndian.Uint32(m.data[12:])
			m.src, m.srcTO = stagAt(m.data, 16), binary.BigEndian.Uint64(m.data[20:])
		}
		h.messages = append(h.messages, *m)
		delete(open, op)
	}
}

func isTagged(u []byte) bool { return u[0]&0x80 != 0 }

func headerOf(u []byte) int {
	if isTagged(u) {
		return 14
	}
	return 18
}

func stagAt(b []byte, at int) stag.STag { return stag.STag(binary.BigEndian.Uint32(b[at:])) }

func putSTag(b []byte, at int, st stag.STag) { binary.BigEndian.PutUint32(b[at:], uint32(st)) }

// of returns the messages with this opcode.
func (h *half) of(op byte) (list []message) {
	for _, m := range h.messages {
		if m.op == op {
			list = append(list, m)
		}
	}
	return list
}

// keep drops the messages with this opcode from the n-th on, and everything sent after the first dropped message.
func (h *half) keep(op byte, n int) {
	for i, m := range h.messages {
		if m.op != op {
			continue
		}
		if n == 0 {
			h.messages = h.messages[:i]
			h.ulpdus = h.ulpdus[:m.first]
			return
		}
		n--
	}
}

// match shortens the halves of a capture with holes, until every Read has its answer.
func match(a, b *half) {
	for {
		before := len(a.messages) + len(b.messages)
		a.whole()
		b.whole()
		for _, x := range [][2]*half{{a, b}, {b, a}} {
			n := min(len(x[0].of(opRead)), len(x[1].of(opResponse)))
			x[0].keep(opRead, n)
			x[1].keep(opResponse, n)
		}
		if len(a.messages)+len(b.messages) == before {
			return
		}
	}
}

// whole drops the segments after the last complete message, and messages whose segments were dropped.
func (h *half) whole() {
	end := 0
	for i, m := range h.messages {
		if m.last >= len(h.ulpdus) {
			h.messages = h.messages[:i]
			break
		}
		end = max(end, m.last+1)
	}
	h.ulpdus = h.ulpdus[:end]
}

// largest returns the length of the longest ULPDU that the end sent.
func (h *half) largest() (n int) {
	for _, u := range h.ulpdus {
		n = max(n, len(u))
	}
	return n
}
