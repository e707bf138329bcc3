package ddp

// The limits for early segments of a guarded stream, whose peer may not use much memory of this
// side yet.
const (
	guardedOctets   = 64 << 10
	guardedSegments = 1 << 10
)

// A guard holds what Guard has replaced.
type guard struct {
	upper Upper
	qn    QN
	queue Queue
}

// Guard replaces the [Upper] of the stream by upper, and the [Queue] of qn by queue, until
// Unguard. Until then no segment is placed before its turn, so that upper is asked about each
// segment once, in the sender's order. Early segments are kept whole, at most 64 KiB of them.
// A queue that embeds [NoBatch] gets its messages one by one. Guard must be called before the
// first segment.
func (s *Stream) Guard(upper Upper, qn QN, queue Queue) {
	q := s.queue(qn)
	s.guarded = &guard{upper: s.upper, qn: qn, queue: q.Queue}
	s.upper, q.Queue = upper, queue
}

// Unguard reverts Guard. The queue may call it in Deliver: all segments after that message are
// processed as if there had been no guard.
func (s *Stream) Unguard() {
	g := s.guarded
	s.guarded = nil
	s.upper, s.queue(g.qn).Queue = g.upper, g.queue
}

// keepLimits returns how far ahead a segment may be, and how many octets of segments that cannot
// be placed are kept.
func (s *Stream) keepLimits() (segments uint64, octets int) {
	if s.guarded != nil {
		return min(s.ahead.limit, guardedSegments), guardedOctets
	}
	return s.ahead.limit, keptLimit
}
