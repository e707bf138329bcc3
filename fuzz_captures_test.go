package iwarp_test

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// FuzzCaptures sends what siw sent in a capture, cut into other segments and damaged, to a QP over TCP, which is
// driven by the poller and may place what it expects before it is verified, to one over a pipe, and to a reference
// that does none of this. All of them must take the same messages, place the same octets, complete the same Reads,
// and find the same error.
//
// The input is the half of a capture, the mode, the size of segments, the size of writes, where the octets end (2), and what
// happens to the segments (see wiretest.Benders).
func FuzzCaptures(f *testing.F) {
	halves := siwHalves(f)
	for i := range halves {
		for size := range byte(len(resegmented)) {
			f.Add([]byte{byte(i), size, size, 3 * size, 0, 0})
			f.Add([]byte{byte(i), 0, size, 0, 0, 0})
			f.Add([]byte{byte(i), 0, size, 120, 0, 0})
		}
		for how := wiretest.Flip; how <= wiretest.Edge; how++ {
			mode := byte(how) + byte(i)
			f.Add(append([]byte{byte(i), mode, mode, 3, 0, 0}, wiretest.Change(false, i%4, how, uint16(3*int(how)+i), byte(1+i))...))
		}
		f.Add([]byte{byte(i), 0, 0, 9, 1, byte(77 * i)})
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) < 6 || len(in) > 128 {
			return
		}
		c := newCaptureCase(halves, in)
		want, racy := c.byReference()
		if racy {
			return
		}
		var plain *verdict
		synctest.Test(t, func(t *testing.T) { plain = c.overPipe(t) })
		fast := c.overTCP(t)
		if plain.whole != fast.whole || want != nil && plain.whole != want.whole {
			return // octets of an STag were overwritten, and one of the STags has the same there
		}
		require.Equal(t, plain.end, fast.end, "the two paths agree")
		plain.agrees(t, fast)
		if want == nil {
			return
		}
		if c.raw { // what is no FPDU any more may look like a part of one
			want.code, plain.code = sameIfRaw(want.code), sameIfRaw(plain.code)
		}
		want.agrees(t, plain)
	})
}

// sameIfRaw does not tell a wrong CRC from an FPDU of which the end is missing.
func sameIfRaw(c transport.Code) transport.Code {
	if c == transport.MPACRC {
		return noCode
	}
	return c
}

// A siwHalf is what one side sent, and the Reads of the other one.
type siwHalf struct {
	half
	reads []refRead
	spans map[stag.STag]*span
	sinks map[stag.STag]bool // of Reads, where siw neither writes nor reads
}

// halfSegments is how many segments of a capture are used: four Reads of 64 KiB are among them.
const halfSegments = 192

// siwHalves are the halves of captures of siw.
func siwHalves(t testing.TB) (list []*siwHalf) {
	for _, name := range []string{"knob_default", "knob_p2p_crc", "rping", "rping_64k", "ib_send_bw", "nvme_rdma"} {
		clients, servers := captured(t, name+".pcap")
		match(&clients[0], &servers[0])
		list = append(list, newSiwHalf(&clients[0], &servers[0]), newSiwHalf(&servers[0], &clients[0]))
	}
	return slices.DeleteFunc(list, func(h *siwHalf) bool { return len(h.messages) == 0 })
}

func newSiwHalf(siw, other *half) *siwHalf {
	h := &siwHalf{half: half{frame: siw.frame, ulpdus: slices.Clone(siw.ulpdus[:min(len(siw.ulpdus), halfSegments)])}, spans: make(map[stag.STag]*span)}
	h.assemble()
	if len(h.of(opRead)) > 0 {
		h.invalidatesNothing()
	}
	covers := (&replay{mrs: h.spans}).covers
	for _, m := range h.messages {
		switch m.op {
		case opWrite:
			covers(m.stag, m.to, len(m.data))
		case opRead:
			covers(m.src, m.srcTO, int(m.size))
		}
	}
	reads := other.of(opRead)
	h.sinks = make(map[stag.STag]bool)
	for _, m := range reads[:min(len(reads), len(h.of(opResponse)))] {
		if h.spans[m.stag] == nil {
			h.sinks[m.stag] = true
		}
		covers(m.stag, m.to, int(m.size))
		h.reads = append(h.reads, refRead{m.stag, m.to, m.size})
	}
	return h
}

// invalidatesNothing makes the Sends that invalidate plain Sends: siw sent them when its Reads had been answered, but here
// nothing waits for an answer.
func (h *siwHalf) invalidatesNothing() {
	for i, u := range h.ulpdus {
		if op := u[1] & 15; !isTagged(u) && (op == 4 || op == 6) {
			u = bytes.Clone(u)
			u[1]--
			putSTag(u, 2, 0)
			h.ulpdus[i] = u
		}
	}
	h.messages = nil
	h.assemble()
}

// resegmented are the payload sizes that messages are cut into; 0: the sizes in the capture.
var resegmented = [...]int{0, 40, 1000, 12 << 10, 40 << 10}

// A captureCase is an input.
type captureCase struct {
	*siwHalf
	crc, raw bool // raw: FPDUs are damaged, and not segments
	size     int  // of payload
	chunk    int  // octets of a write; 0: all
	cut      int
	changes  []byte
}

func newCaptureCase(halves []*siwHalf, in []byte) *captureCase {
	c := &captureCase{siwHalf: halves[int(in[0])%len(halves)], crc: in[1]%3 != 1, raw: in[1]%3 == 2, size: resegmented[int(in[2])%len(resegmented)]}
	c.chunk, c.cut, c.changes = int(in[3])*int(in[3]), int(binary.BigEndian.Uint16(in[4:])), in[6:]
	return c
}

// segments returns the segments of the capture, or of the same messages with other sizes.
func (c *captureCase) segments() (list [][]byte) {
	if c.size == 0 {
		return c.ulpdus
	}
	for _, m := range c.messages {
		head := c.ulpdus[m.first]
		head = head[:headerOf(head)]
		for at := 0; at == 0 || at < len(m.data); at += c.size {
			u := append(bytes.Clone(head), m.data[at:min(at+c.size, len(m.data))]...)
			u[0] &^= 0x40
			if at+c.size >= len(m.data) {
				u[0] |= 0x40
			}
			if isTagged(u) {
				binary.BigEndian.PutUint64(u[6:], binary.BigEndian.Uint64(u[6:])+uint64(at))
			} else {
				binary.BigEndian.PutUint32(u[14:], uint32(at))
			}
			list = append(list, u)
		}
	}
	return list
}

// octets returns what is sent to a QP with these STags, and how many segments come before the first damaged one.
func (c *captureCase) octets(stags map[stag.STag]stag.STag) (wire []byte, whole int) {
	there, _ := wiretest.Benders(c.changes)
	frame := func(list ...[]byte) (out []byte) {
		for _, u := range list {
			out = append(out, wiretest.FPDU(renamed(u, stags))...)
		}
		return out
	}
	for _, u := range c.segments() {
		if c.raw {
			wire = append(wire, bytes.Join(there.Bend(frame(u)), nil)...)
		} else {
			wire = append(wire, frame(there.Bend(u)...)...)
		}
		if !there.Bent() {
			whole++
		}
	}
	if c.cut > 0 {
		wire = wire[:c.cut%(len(wire)+1)]
	}
	return wire, whole
}

// renamed replaces the STags of the capture.
func renamed(u []byte, stags map[stag.STag]stag.STag) []byte {
	u = bytes.Clone(u)
	put := func(at int) {
		if len(u) >= at+4 {
			if st, ok := stags[stagAt(u, at)]; ok {
				putSTag(u, at, st)
			}
		}
	}
	if len(u) < 2 {
		return u
	}
	put(2)
	if !isTagged(u) && u[1]&15 == opRead {
		put(34)
	}
	return u
}

// receives are the buffers of the receives that are posted.
func (c *captureCase) receives() (list [][]byte) {
	for _, m := range c.messages {
		if m.op >= opSend && m.op <= 6 {
			list = append(list, make([]byte, len(m.data)+8))
		}
	}
	return list
}

// A verdict is what a QP, or the reference, has made of the octets.
type verdict struct {
	code     transport.Code // of the error that it has found, or noCode
	end      string         // the error of the connection, if it has found none
	whole    int            // the segments before the first that was damaged
	messages []refMessage
	answered int // Reads
	regions  map[stag.STag][]byte
}

// agrees compares two verdicts. It prints no more than it must.
func (v *verdict) agrees(t *testing.T, other *verdict) {
	t.Helper()
	require.Equal(t, v.code, other.code, "the error")
	require.Len(t, other.messages, len(v.messages), "messages")
	require.Equal(t, v.answered, other.answered, "Reads")
	for i, m := range v.messages {
		require.Equal(t, m, other.messages[i], "message %d", i)
	}
	for st, mem := range v.regions {
		if !bytes.Equal(mem, other.regions[st]) {
			require.Fail(t, "a region differs", "%v, %d octets", st, len(mem))
		}
	}
}

// conceals makes the sinks of Reads that were not answered the same, for their contents are undefined.
func (c *captureCase) conceals(v *verdict) *verdict {
	for _, r := range c.reads[v.answered:] {
		if r.len > 0 {
			clear(v.regions[r.sink][r.to-c.spans[r.sink].lo:][:r.len])
		}
	}
	return v
}

// byReference returns the verdict of the reference: nil if it does not know what came. racy: the outcome depends on timing.
func (c *captureCase) byReference() (v *verdict, racy bool) {
	r := &reference{crc: c.crc, came: make(map[int]bool), regions: make(map[stag.STag]*refRegion), receives: c.receives(), reads: c.reads}
	v = &verdict{regions: make(map[stag.STag][]byte)}
	for st, s := range c.spans {
		g := &refRegion{base: s.lo, mem: make([]byte, s.hi-s.lo), sink: c.sinks[st]}
		r.regions[st], v.regions[st] = g, g.mem
	}
	wire, whole := c.octets(nil)
	v.code, v.whole = r.receive(wire), whole
	v.messages, v.answered = r.taken, r.answered
	if r.unsure {
		return nil, r.racy || r.asked
	}
	return c.conceals(v), r.racy
}

// ordered returns the STags of the capture, sorted.
func (c *captureCase) ordered() []stag.STag { return slices.Sorted(maps.Keys(c.spans)) }
