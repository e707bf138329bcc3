package ddp

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// For small messages, the path of each segment from the LLP to its place and to its completion
// costs more than its octets. So messages that arrive together are placed one after the other, and
// then delivered together. Only segments that are clearly in order take this path; all others
// are processed, and checked, one by one.

// batchMax is the most messages that are delivered together.
const batchMax = 32

// Take processes the next segments of a batch: u, the seq-th segment of the sender, and then
// those of batch. If u is an untagged message of one segment, Take processes the similar
// messages after it as well, and delivers all of them together. It processes any other segment
// alone, as Segment does. It returns how many it has processed, and the segment after them, or nil
// if there is none. If there is an error it has processed none, and rest is u.
func (s *Stream) Take(seq uint64, u []byte, batch transport.SegmentBatch) (n int, rest []byte, err error) {
	if q := s.batchQueue(seq, u); q != nil {
		if n, rest = s.placeBatch(q, &s.seg.u, u, batch); n > 0 {
			q.DeliverBatch(&s.seg.u, s.lens[:n])
			q.due += MSN(n)
			s.next += uint64(n)
			s.open = false
			return n, rest, nil
		}
	}
	if err := s.Segment(seq, u); err != nil {
		return 0, u, err
	}
	return 1, batch.Next(), nil
}

// batchQueue returns the queue of u if u is a message that may be delivered together with
// later ones, and otherwise nil. It leaves the header in s.seg.u.
func (s *Stream) batchQueue(seq uint64, u []byte) *untaggedQueue {
	if s.err != nil || seq != s.next || s.ahead.held > 0 || !isWhole(u) {
		return nil
	}
	h := &s.seg.u
	if h.parse(u) != nil {
		return nil
	}
	q := s.queue(h.QN)
	if q == nil || h.MSN != q.due || q.placed.begun() || !q.MayBatch(h) || s.upper.Untagged(h.fields(), len(u)-UntaggedLen) != nil {
		return nil
	}
	return q
}

// placeBatch places messages like that of h, the first of which is in u. It leaves no region
// pinned.
func (s *Stream) placeBatch(q *untaggedQueue, h *UntaggedHeader, u []byte, batch transport.SegmentBatch) (n int, rest []byte) {
	var pinned pinCache
	most := min(q.Posted(), batchMax)
	for n < most && h.isLike(u) && binary.BigEndian.Uint32(u[10:]) == uint32(q.due)+uint32(n) {
		payload := u[UntaggedLen:]
		if !pinned.place(q.Buffer(n, h), payload) {
			break
		}
		s.lens[n] = uint32(len(payload))
		n++
		u = batch.Next() // nil at the end, which is not like h
	}
	pinned.unpin()
	return n, u
}

// isWhole reports whether b is the only segment of an untagged message.
func isWhole(b []byte) bool {
	return len(b) >= UntaggedLen && b[0]&(controlTagged|controlLast|controlVersion) == controlLast|version &&
		binary.BigEndian.Uint32(b[14:]) == 0
}

// isLike reports whether b is a whole message for the queue of h with its RsvdULP.
func (h *UntaggedHeader) isLike(b []byte) bool {
	return isWhole(b) && b[1] == h.RsvdULP && binary.BigEndian.Uint32(b[6:]) == uint32(h.QN)
}

// A pinCache holds a pin of the region that was last placed into.
type pinCache struct{ region *stag.Region }

// place places p into buf, which must be one span of a region's memory. It reports false if it
// is not, or is too short, or if the region is INVALID, or durable, so that placing may take long.
func (c *pinCache) place(buf []stag.Span, p []byte) bool {
	if len(p) == 0 {
		return true
	}
	if len(buf) != 1 || len(p) > buf[0].Len {
		return false
	}
	r := buf[0].Region
	switch {
	case r == nil || r.Flusher() != nil:
		return false
	case r != c.region:
		c.unpin()
		if !r.Pin() {
			return false
		}
		c.region = r
	case !r.Valid():
		return false
	}
	return r.Bytes(buf[0].Off, len(p)) != nil && r.Place(buf[0].Off, p) == nil
}

func (c *pinCache) unpin() {
	if c.region != nil {
		c.region.Unpin()
		c.region = nil
	}
}
