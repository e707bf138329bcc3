package rdmap

import (
	"github.com/goiwarp/iwarp/transport"
)

// fillSends puts Sends of one segment into the batch, one right after the other, for as
// long as nothing else is to be sent first. What it leaves, or what stops it, is for
// nextMessage. It returns what they weigh, about as much as room at most.
func (s *Stream) fillSends(llp transport.LLP, room int64) (weight int64) {
	f := &s.fill
	if f.next == f.posted || !isPlainSend(at(f.ring, f.next)) {
		return 0
	}
	wholes := f.sender.Wholes(llp, QNSend)
	n := uint64(0)
	for ; weight < room && f.next < f.posted; n++ {
		r := at(f.ring, f.next)
		if !isPlainSend(r) || s.answerable.Load() || s.ending.Load() {
			break
		}
		x := r.Spans[0].Region
		if x != nil && !f.holds.take(x) {
			break
		}
		msn, ok := wholes.Emit(OpSend.control(), &r.Spans[0])
		if !ok {
			if x != nil {
				f.holds.give(x)
			}
			break
		}
		r.msn, r.held = msn, 1
		weight += int64(r.Len) + messageCost
		f.next++
	}
	wholes.Done()
	if n > 0 {
		f.lead = 0 // no response was waiting
		f.tally.count(&s.stats.out, OpSend, n, uint64(weight)-n*messageCost)
	}
	return weight
}

// isPlainSend reports whether r is a Send from one place, without any flags.
func isPlainSend(r *Request) bool {
	return r.Kind == KindSend && r.Flags == 0 && len(r.Spans) == 1
}
