package ddp

import (
	"bytes"
	"errors"
	"math/bits"

	"github.com/goiwarp/iwarp/transport"
)

// A window remembers the segments that came before their turn. Its ring is made
// when the first one comes, and grows with how far ahead they are: on a path that keeps
// the order it costs nothing, and on one that nearly does, little.
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

// A slot is a segment that came before its turn. If it was placed at once only its
// header is remembered. If it could not be, it is kept whole and judged when its
// turn comes: until then an error counts for nothing, for an earlier segment may
// be in error too (and is then the one to report), and a buffer that is missing now
// may be posted.
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

// put remembers a segment where next is the one whose turn it is.
func (w *window) put(t slot, next uint64) {
	if span := t.seq - next + 1; span > uint64(len(w.ring)) {
		w.grow(span)
	}
	*w.slot(t.seq) = t
	w.held++
	w.kept += len(t.kept)
}

// grow makes room for so many segments in a row, no two of which share a slot.
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

// ErrAhead is matched by the error of a stream whose segments came too far ahead of their turn. It blames no message.
var ErrAhead = errors.New("too many segments came before their turn")

// early takes a segment before its turn. What it keeps is bounded: Window segments, and
// keptLimit octets of those that cannot be placed yet; less of a guarded stream, which places
// none of them.
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

// drain takes, in order, the segments that were waiting for the one just taken.
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
		if s.ahead.held > 0 { // else the stream has ended
			s.ahead.remove(seq)
		}
	}
	return nil
}

// Forget drops the segments that came before their turn. The layer above calls it when the stream ends with the message that it is
// delivered, such as the peer's Terminate: what the peer has sent after that is not delivered.
func (s *Stream) Forget() { s.ahead.drop() }

// wasPlaced takes a segment whose turn has come and which was placed before.
func (s *Stream) wasPlaced(t *slot) error {
	var seg segment
	err := seg.parse(t.head[:]) // as it did when it came
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
