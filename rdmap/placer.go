package rdmap

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/transport"
)

var _ transport.Placer = (*Stream)(nil)

// Segment processes one segment from the LLP: see [ddp.Stream.Segment]. After an error other
// than [transport.ErrStall] and [ErrLate] the owner must call Terminate with it. A stream that
// is ending drops all segments.
func (s *Stream) Segment(seq uint64, ulpdu []byte) error {
	if s.in() >= phaseShut {
		return s.afterShut(seq, ulpdu)
	}
	return s.ddp.Segment(seq, ulpdu)
}

// Segments processes a batch of segments: see [transport.Placer]. It returns the same errors as
// Segment.
func (s *Stream) Segments(seq uint64, batch transport.SegmentBatch) error {
	for u := batch.Next(); u != nil; {
		if s.in() >= phaseShut {
			if err := s.afterShut(seq, u); err != nil {
				return err
			}
			seq++
			u = batch.Next()
			continue
		}
		n, rest, err := s.ddp.Take(seq, u, batch)
		if err != nil {
			return err
		}
		seq += uint64(n)
		u = rest
	}
	return nil
}

// afterShut processes a segment that has arrived after this side has ended its half.
func (s *Stream) afterShut(seq uint64, ulpdu []byte) error {
	switch {
	case s.in() > phaseShut:
		return nil
	case mayBeLate(ulpdu):
		return s.ddp.Segment(seq, ulpdu)
	}
	return s.late()
}

// late refuses the first segment that has arrived too late: the applications do not agree on the
// end of the stream (draft-hilland-rddp-verbs section 6.2.5).
func (s *Stream) late() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.enter(phaseLate) {
		return nil // the stream is ending
	}
	return ErrLate
}

// mayBeLate reports whether a segment is accepted after the end of our half: a Terminate is, and
// an empty RDMA Write, which has no effect.
func mayBeLate(segment []byte) bool {
	switch {
	case len(segment) < 2:
		return false
	case ddp.IsTagged(segment):
		return opcodeOf(segment[1]) == OpWrite && len(segment) == ddp.TaggedLen
	}
	return opcodeOf(segment[1]) == OpTerminate
}

// MidMessage reports whether the last segment that was processed leaves its message unfinished. Only the
// receiving goroutine may call it.
func (s *Stream) MidMessage() bool { return s.ddp.MidMessage() }

// Predict predicts the next segments: see [transport.Placer].
func (s *Stream) Predict(dst []transport.PredictedSegment, size, room int) []transport.PredictedSegment {
	if s.in() >= phaseShut {
		return dst
	}
	return s.ddp.Predict(dst, size, room)
}

// Unpin releases the memory that Predict has pinned.
func (s *Stream) Unpin() { s.ddp.Unpin() }

// Placed is Segment for a segment that has arrived as predicted. A segment that was predicted
// before Shut counts as one that has arrived before Shut.
func (s *Stream) Placed(seq uint64, p *transport.PredictedSegment) error {
	if s.in() > phaseShut {
		return nil
	}
	return s.ddp.Placed(seq, p)
}
