package perf

import (
	"errors"
	"unsafe"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// addresses is a run of memory, [from, to).
type addresses struct{ from, to uintptr }

func addressOf(b []byte) addresses {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return addresses{at, at + uintptr(len(b))}
}

// has reports whether b lies within the run.
func (a addresses) has(b []byte) bool {
	o := addressOf(b)
	return a.from <= o.from && o.to <= a.to
}

// An outWitness sees what is passed to the system.
type outWitness struct {
	transport.Stream
	source addresses
	lent   int // octets that the system took from source itself
}

// Detach leaves the witness in place.
func (s *outWitness) Detach() transport.Stream {
	s.Stream = transport.Detach(s.Stream)
	return s
}

func (s *outWitness) Write(bufs [][]byte, wait bool) (int, error) {
	n, err := s.Stream.Write(bufs, wait)
	for left := n; left > 0; bufs = bufs[1:] {
		k := min(left, len(bufs[0]))
		if s.source.has(bufs[0][:k]) {
			s.lent += k
		}
		left -= k
	}
	return n, err
}

// An inWitness sees where the system puts received octets, and where they are when a segment
// is handed up.
type inWitness struct {
	transport.NoPrediction
	transport.Stream
	place *rdmap.Stream
	sink  *sinkBuffer

	reads []arrival // not handed up yet
	came  int       // octets of the stream so far
	at    int       // where in the stream the next FPDU begins
	moved int       // octets handed up elsewhere than where the system put them
}

// An arrival is n octets, at off in the stream, that the system put at addr.
type arrival struct {
	off, n int
	addr   uintptr
}

// Detach leaves the witness in place.
func (s *inWitness) Detach() transport.Stream {
	s.Stream = transport.Detach(s.Stream)
	return s
}

func (s *inWitness) Read(p []byte, wait transport.Wait) (int, error) {
	n, err := s.Stream.Read(p, wait)
	if n > 0 {
		s.reads = append(s.reads, arrival{s.came, n, addressOf(p).from})
		s.came += n
	}
	return n, err
}

// established is called when all octets so far belonged to the set-up.
func (s *inWitness) established() { s.at, s.reads = s.came, nil }

// Segment hands a segment up. In the stream there are two octets of length in front
// of it, and padding and a CRC after it (RFC 5044 section 4).
func (s *inWitness) Segment(seq uint64, ulpdu []byte) error {
	const head, crc = 2, 4
	off := s.at + head
	s.moved += len(ulpdu) - s.unmoved(off, ulpdu)
	s.at += (head+len(ulpdu)+3)&^3 + crc
	for len(s.reads) > 0 && s.reads[0].off+s.reads[0].n <= s.at {
		s.reads = s.reads[1:]
	}
	s.sink.segment = addressOf(ulpdu)
	return s.place.Segment(seq, ulpdu)
}

func (s *inWitness) Segments(seq uint64, batch transport.SegmentBatch) error {
	return transport.EachSegment(s, seq, batch)
}

// unmoved counts the octets that are where the system put them.
func (s *inWitness) unmoved(off int, ulpdu []byte) int {
	here, n := addressOf(ulpdu).from, 0
	for _, r := range s.reads {
		first, end := max(off, r.off), min(off+len(ulpdu), r.off+r.n)
		if first < end && r.addr+uintptr(first-r.off) == here+uintptr(first-off) {
			n += end - first
		}
	}
	return n
}

// A sinkBuffer is a region that sees where its octets come from.
type sinkBuffer struct {
	mem     []byte
	segment addresses // the segment that is being placed
	placed  int
	copied  int // placed, and copied on the way there
}

func newSinkBuffer(n int) *sinkBuffer { return &sinkBuffer{mem: make([]byte, n)} }

func (b *sinkBuffer) Size() int64 { return int64(len(b.mem)) }

func (b *sinkBuffer) ReadAt(p []byte, off int64) (int, error) { return copy(p, b.mem[off:]), nil }

func (b *sinkBuffer) WriteAt(p []byte, off int64) (int, error) {
	n := copy(b.mem[off:], p)
	b.placed += n
	b.copied += n
	if !b.segment.has(p) {
		b.copied += n // once more, on the way from the segment
	}
	return n, nil
}

// noReceives is a receive queue without receives: only Writes come.
type noReceives struct{}

func (noReceives) Posted() int                         { return 0 }
func (noReceives) Buffer(int) []stag.Span              { return nil }
func (noReceives) Missing() error                      { return errors.New("a message where only Writes are sent") }
func (noReceives) Deliver(rdmap.Received)              {}
func (noReceives) DeliverSends(rdmap.Opcode, []uint32) {}

// noEvents ignores all events of a queue pair.
type noEvents struct{}

func (noEvents) Complete(*rdmap.Request, rdmap.Status, transport.Code) {}
func (noEvents) Terminated(rdmap.Terminate)                            {}
func (noEvents) Kick()                                                 {}
func (noEvents) Completed()                                            {}
