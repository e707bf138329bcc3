package ddp

import (
	"bytes"
	"errors"
	"math/bits"

	"github.com/goiwarp/iwarp/transport"
)

// A window holds the segments that arrived before their turn. Its ring is allocated for
// the first one, and grows with how far ahead they are: it costs nothing on a path that
// preserves the order, and little on one that nearly does.
type window struct {
	limit uint64 // how many segments may be ahead
	held  int
	kept  int    // octets of the segments that are kept whole
	ring  []slot // its length is a power of two
}

const (
	leastRing = 16
	// keptLimit bounds the octets of segments that are kept whole.
	keptLimit = 4 << 20
)

// A slot is a segment that arrived before its turn. If it was placed at once, only its
// header is kept. Otherwise it is kept whole, and checked at its turn. Until then an
// error is ignored, because an earlier segment may also be in error (and must then be
// the one that is reported), and a buffer that is missing now may still be
// posted.
type slot struct {
	used bool
	seq  uint64
	head [UntaggedLen]byte
	len  int // of the whole segment

	placed bool
	kept   []byte // the whole segment, if not placed
}

func (w *window) slot(seq uint64) *slot { return &w.ring[seq%uint64(len(w.ring))] }

func (w *window) holds(seq uint64) bool {
	if w.held == 0 {
		return false
	}
	t := w.slot(seq)
	return t.used && t.seq == seq
}

// put stores a segment; next is the number of the segment whose turn it is.
func (w *window) put(t slot, next uint64) {
	if span := t.seq - next + 1; span > uint64(len(w.ring)) {
		w.grow(span)
	}
	*w.slot(t.seq) = t
	w.held++
	w.kept += len(t.kept)
}

// grow makes room for span consecutive segments, no two of which share a slot.
func (w *window) grow(span uint64) {
	old := w.ring
	w.ring = make([]slot, max(leastRing, 1<<bits.Len64(span-1)))
	for _, t := range old {
		if t.used {
			*w.slot(t.seq) = t
		}
	}
}

func (w *window) remove(seq uint64) {
	w.kept -= len(w.slot(seq).kept)
	*w.slot(seq) = slot{}
	w.held--
}

func (w *window) drop() { w.ring, w.held, w.kept = nil, 0, 0 }

// ErrAhead is matched by the error of a stream whose segments arrived too far ahead of their turn. It concerns no message.
var ErrAhead = errors.New("too many segments came before their turn")

// early processes a segment before its turn. What it keeps is bounded: Window segments, and
// keptLimit octets of segments that cannot be placed yet. A guarded stream places none of them,
// and keeps less.
func (s *Stream) early(seq uint64, ulpdu []byte) error {
	limit, octets := s.keepLimits()
	if seq-s.next > limit {
		return s.refuse(ulpdu, len(ulpdu), transport.Faultf(transport.DDPLocalCatastrophic,
			"%w: segment %d where %d was next, window %d", ErrAhead, seq, s.next, limit))
	}
	t := slot{used: true, seq: seq, len: len(ulpdu)}
	copy(t.head[:], ulpdu)
	seg := &s.seg
	err := seg.parse(ulpdu)
	if err == nil && s.guarded == nil {
		err = s.place(seg, false)
	}
	seg.payload = nil
	if t.placed = err == nil && s.guarded == nil; !t.placed {
		if s.ahead.kept+len(ulpdu) > octets {
			return s.refuse(ulpdu, len(ulpdu), transport.Faultf(transport.DDPLocalCatastrophic,
				"%w: more than %d octets could not be placed", ErrAhead, octets))
		}
		t.kept = bytes.Clone(ulpdu)
	}
	s.ahead.put(t, s.next)
	return nil
}

// drain processes, in order, the segments that were waiting for the one just processed.
func (s *Stream) drain() error {
	for s.ahead.holds(s.next) {
		seq := s.next
		var err error
		if t := s.ahead.slot(seq); t.placed {
			err = s.wasPlaced(t)
		} else {
			err = s.inTurn(t.kept)
		}
		if err != nil {
			return err
		}
		if s.ahead.held > 0 { // otherwise the stream has ended
			s.ahead.remove(seq)
		}
	}
	return nil
}

// Forget drops the segments that arrived before their turn. The layer above calls it when the stream ends with the message
// that is being delivered, such as the peer's Terminate: what the peer has sent after that is not delivered.
func (s *Stream) Forget() { s.ahead.drop() }

// wasPlaced processes, at its turn, a segment that was placed before.
func (s *Stream) wasPlaced(t *slot) error {
	var seg segment
	err := seg.parse(t.head[:]) // as it was parsed on arrival
	seg.n = t.len - headerLen(seg.tagged)
	if !seg.tagged {
		seg.q = s.queue(seg.u.QN)
		err = seg.q.isDue(seg.u.MSN)
		if err == nil {
			err = seg.q.placed.check(seg.u.MO, seg.n, seg.u.Last)
		}
	}
	if err == nil {
		err = s.deliver(&seg)
	}
	if err != nil {
		return s.refuse(t.head[:], t.len, err)
	}
	s.next++
	return nil
}
