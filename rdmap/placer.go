package rdmap

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/transport"
)

var _ transport.Placer = (*Stream)(nil)

// Segment takes one segment from the LLP: see [ddp.Stream.Segment]. After an error other
// than [transport.ErrStall] and [ErrLate] the owner calls Terminate with it. Once the stream
// is ending everything is dropped.
func (s *Stream) Segment(seq uint64, ulpdu []byte) error {
	if s.in() >= phaseShut {
		return s.afterShut(seq, ulpdu)
	}
	return s.ddp.Segment(seq, ulpdu)
}

// Segments takes segments that have come together: see [transport.Placer]. Its errors are
// those of Segment.
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

// afterShut takes a segment that comes when this side has ended its half.
func (s *Stream) afterShut(seq uint64, ulpdu []byte) error {
	switch {
	case s.in() > phaseShut:
		return nil
	case mayBeLate(ulpdu):
		return s.ddp.Segment(seq, ulpdu)
	}
	return s.late()
}

// late refuses the first segment that comes too late: the applications do not agree on the
// end of the stream (draft-hilland-rddp-verbs section 6.2.5).
func (s *Stream) late() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.enter(phaseLate) {
		return nil // the stream is ending
	}
	return ErrLate
}

// mayBeLate reports whether a segment is taken also behind the end of our half: a Terminate
// is still heard, and an empty RDMA Write means nothing.
func mayBeLate(segment []byte) bool {
	if ddp.IsTagged(segment) && len(segment) == ddp.TaggedLen {
		return true
	}
	return len(segment) > 1 && opcodeOf(segment[1]) == OpTerminate
}

// Predict tells what is to come: see [transport.Placer], and Unpin and Placed.
func (s *Stream) Predict(dst []transport.PredictedSegment, size, room int, alone bool) []transport.PredictedSegment {
	if s.in() >= phaseShut {
		return dst
	}
	return s.ddp.Predict(dst, size, room, alone)
}

// Unpin ends what Predict began.
func (s *Stream) Unpin() { s.ddp.Unpin() }

// Placed is Segment for one that has come as predicted. One that was predicted before Shut
// counts as one that came before it.
func (s *Stream) Placed(seq uint64, p *transport.PredictedSegment) error {
	if s.in() > phaseShut {
		return nil
	}
	return s.ddp.Placed(seq, p)
}
