package ddp

// What a guarded stream keeps of what comes before its turn: the peer may not use the memory of
// this side yet.
const (
	guardedOctets   = 64 << 10
	guardedSegments = 1 << 10
)

// A guard is what Guard has replaced.
type guard struct {
	upper Upper
	qn    QN
	queue Queue
}

// Guard has upper stand in for the [Upper] of the stream, and queue for the [Queue] of qn, until
// Unguard. Until then no segment is placed before its turn, so that upper is asked about each
// in the sender's order and once: those that come early are kept whole, at most 64 KiB of them.
// A queue that embeds [NoBatch] gets its messages one by one. Guard must be called before the
// first segment.
func (s *Stream) Guard(upper Upper, qn QN, queue Queue) {
	q := s.queue(qn)
	s.guarded = &guard{upper: s.upper, qn: qn, queue: q.Queue}
	s.upper, q.Queue = upper, queue
}

// Unguard ends what Guard has begun. The queue may call it when it is told of a message: all
// that comes behind that is taken as if there had been no guard.
func (s *Stream) Unguard() {
	g := s.guarded
	s.guarded = nil
	s.upper, s.queue(g.qn).Queue = g.upper, g.queue
}

// keepLimits are how far ahead a segment may be, and how many octets are kept of those that
// cannot be placed.
func (s *Stream) keepLimits() (segments uint64, octets int) {
	if s.guarded != nil {
		return min(s.ahead.limit, guardedSegments), guardedOctets
	}
	return s.ahead.limit, keptLimit
}
