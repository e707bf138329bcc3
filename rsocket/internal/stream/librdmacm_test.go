package stream

import (
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// A librdmacm does what librdmacm does with the same messages, in its terms: it counts in 16 bits, tests
// limits only for equality, and looks at slots in memory before it has polled the message behind
// them.
type librdmacm struct {
	half, rq, sq int
	table        *end // where the peer writes slots

	sseq, limit        uint16
	slot               int
	ring, queued, free int
	sqe, ctrl          int
	posted             []int

	rseq, rseqComp         uint16
	avail, freeOff, remote int
	messages               []int
	readOff                int
}

func newLibrdmacm(e *end, own, peer sizes, sq int) *librdmacm {
	e.slots[0] = wire.Slot{Key: simKey, Length: uint32(peer.half)}
	return &librdmacm{
		half: own.half, rq: own.credits, sq: sq, table: e, limit: uint16(peer.credits), free: own.ring, ring: own.ring,
		sqe: sq, ctrl: 4, rseqComp: uint16(own.credits / 2), avail: own.half, freeOff: own.half, remote: 1,
	}
}

func (s *librdmacm) Room() (off, n int) {
	return s.queued % s.ring, min(s.free, s.ring-s.queued%s.ring)
}

func (s *librdmacm) Queue(n int) { s.queued, s.free = s.queued+n, s.free-n }

func (s *librdmacm) pending() int {
	n := s.ring - s.free
	for _, p := range s.posted {
		n -= p
	}
	return n
}

func (s *librdmacm) Readable() (half, off, n int) {
	if len(s.messages) == 0 {
		return 0, 0, 0
	}
	return 0, s.readOff, min(s.messages[0], 2*s.half-s.readOff)
}

func (s *librdmacm) Consume(n int) {
	s.avail += n
	s.readOff = (s.readOff + n) % (2 * s.half)
	if n == 0 {
		return
	}
	if s.messages[0] -= n; s.messages[0] == 0 {
		s.messages = s.messages[1:]
		s.rseq++
	}
}

func (s *librdmacm) Next() (Work, bool) {
	if (s.avail >= s.half || int16(s.rseq-s.rseqComp) >= 0) && s.ctrl > 1 {
		return s.giveCredits(), true
	}
	target := &s.table.slots[s.slot]
	if n := min(s.pending(), int(target.Length)); s.sqe >= 2 && n > 0 && s.sseq != s.limit {
		off := (s.queued - s.pending()) % s.ring
		n = min(n, s.ring-off)
		w := Work{Message: wire.NewMessage(wire.OpData, uint32(n)), Writes: Data, Addr: target.Addr, Key: target.Key, Off: off, N: n}
		s.sseq++
		s.sqe -= 2
		s.posted = append(s.posted, n)
		target.Addr += uint64(n)
		if target.Length -= uint32(n); target.Length == 0 {
			s.slot = 1 - s.slot
		}
		return w, true
	}
	return Work{}, false
}

func (s *librdmacm) giveCredits() Work {
	s.rseqComp = s.rseq + uint16(s.rq/2)
	w := Work{Message: wire.NewMessage(wire.OpSGL, uint32(s.rseq)+uint32(s.rq))}
	s.posted = append(s.posted, 0)
	s.ctrl--
	if s.avail >= s.half {
		w.Writes, w.Addr, w.Key = OneSlot, uint64(s.remote)*wire.SlotSize, simKey+1
		w.Slot = wire.Slot{Addr: uint64(s.freeOff), Key: simKey, Length: uint32(s.half)}
		s.avail -= s.half
		s.freeOff = (s.freeOff + s.half) % (2 * s.half)
		s.remote = 1 - s.remote
	}
	return w
}

func (s *librdmacm) Completed() {
	n := s.posted[0]
	s.posted = s.posted[1:]
	if n == 0 {
		s.ctrl++
		return
	}
	s.sqe += 2
	s.free += n
}

func (s *librdmacm) Message(m wire.Message, _ Table) error {
	switch m.Op() {
	case wire.OpSGL:
		s.limit = uint16(m.Data())
	case wire.OpData:
		s.messages = append(s.messages, int(m.Data()))
	default:
		return fmt.Errorf("%v", m)
	}
	return nil
}

// TestRSK_6_LibrdmacmWithFewReceives runs streams to a librdmacm, which polls as late as it can. It
// has no receives beyond those that it tells.
func TestRSK_6_LibrdmacmWithFewReceives(t *testing.T) {
	programs := map[string][2]program{
		"octets both ways": {{total: 3000, write: 1, reads: 1}, {total: 3000, write: 1, reads: 1}},
		"much both ways":   {{total: 1 << 18, write: 1 << 16, reads: 1 << 16}, {total: 1 << 18, write: 1 << 16, reads: 1 << 16}},
		"at random":        {{total: 1 << 17, write: 5000, reads: 5000, random: true}, {total: 1 << 17, write: 5000, reads: 5000, random: true}},
		"halves that grow": {{total: 1 << 17, write: 5000, reads: 5000, random: true, grows: 3000}, {total: 1 << 19, write: 9000, reads: 5000, random: true}},
		"from this side":   {{total: 1 << 18, write: 1 << 16, reads: 1 << 16}, {reads: 1 << 16}},
		"to this side":     {{reads: 1 << 16}, {total: 1 << 18, write: 1 << 16, reads: 1 << 16}},
		"octets to it":     {{total: 3000, write: 1, reads: 1}, {reads: 1}},
		"octets from it":   {{reads: 1}, {total: 3000, write: 1, reads: 1}},
	}
	for name, p := range programs {
		for _, rq := range []int{16, 17, 64, 384, 65534} {
			t.Run(fmt.Sprintf("%s/%d", name, rq), func(t *testing.T) {
				for seed := range uint64(2) {
					ours, theirs := sizes{half: 8192, credits: 384, ring: 8192}, sizes{half: 4096, credits: rq, ring: 8192}
					a, b := join(t, ours, theirs)
					a.size = ours.credits + 64
					b.protocol, b.late = newLibrdmacm(b, theirs, ours, max(16, min(rq, 384))), true
					run(t, a, b, p[0], p[1], seed)
				}
			})
		}
	}
}
