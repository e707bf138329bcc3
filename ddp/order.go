package ddp

import (
	"bytes"

	"github.com/goiwarp/iwarp/transport"
)

// A window remembers the segments that came before their turn. Its ring is made
// when the first one comes: on a path that keeps the order it costs nothing.
type window struct {
	limit uint64 // how many segments may be ahead
	held  int
	ring  []slot
}

// A slot is a segment that came before its turn. If it was placed at once only its
// header is remembered. If it could not be, it is kept whole and judged when its
// turn comes: until then an error counts for nothing, for an earlier segment may
// be in error too (and is then the one to report), and a buffer that is missing now
// may be posted.
type slot struct {
	used bool
	seq  uint64
	head [UntaggedLen]byte
	len  int    // of the whole segment
	kept []byte // the whole segment, if not placed
}

func (w *window) slot(seq uint64) *slot { return &w.ring[seq%uint64(len(w.ring))] }

func (w *window) holds(seq uint64) bool {
	if w.held == 0 {
		return false
	}
	t := w.slot(seq)
	return t.used && t.seq == seq
}

func (w *window) put(t slot) {
	if w.ring == nil {
		w.ring = make([]slot, w.limit+1) // one more: no two of next..next+limit share a slot
	}
	*w.slot(t.seq) = t
	w.held++
}

func (w *window) remove(seq uint64) {
	*w.slot(seq) = slot{}
	w.held--
}

func (w *window) drop() { w.ring, w.held = nil, 0 }

// early takes a segment before its turn. What it keeps is bounded: Window segments.
func (s *Stream) early(seq uint64, ulpdu []byte) error {
	if seq-s.next > s.ahead.limit {
		return s.refuse(ulpdu, len(ulpdu), transport.Faultf(transport.DDPLocalCatastrophic,
			"segment %d came where %d was next, window %d", seq, s.next, s.ahead.limit))
	}
	t := slot{used: true, seq: seq, len: len(ulpdu)}
	copy(t.head[:], ulpdu)
	seg := &s.seg
	err := seg.parse(ulpdu)
	if err == nil {
		err = s.place(seg, false)
	}
	seg.payload = nil
	if err != nil {
		t.kept = bytes.Clone(ulpdu)
	}
	s.ahead.put(t)
	return nil
}

// drain takes, in order, the segments that were waiting for the one just taken.
func (s *Stream) drain() error {
	for s.ahead.holds(s.next) {
		t := s.ahead.slot(s.next)
		var err error
		if t.kept != nil {
			err = s.inTurn(t.kept)
		} else {
			err = s.wasPlaced(t)
		}
		if err != nil {
			return err
		}
		s.ahead.remove(s.next - 1)
	}
	return nil
}

// wasPlaced takes a segment whose turn has come and which was placed before.
func (s *Stream) wasPlaced(t *slot) error {
	var seg segment
	err := seg.parse(t.head[:]) // as it did when it came
	seg.n = t.len - headerLen(seg.tagged)
	if !seg.tagged {
		seg.q = s.queue(seg.u.QN)
		err = seg.q.isDue(seg.u.MSN)
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
