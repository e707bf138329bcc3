package rdmap

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/transport"
)

// fillSegments puts Sends and Writes of one segment into the batch, one right after the
// other, for as long as nothing else is to be sent first. What it leaves, or what stops it,
// is for nextMessage. It returns what they weigh, about as much as room at most.
func (s *Stream) fillSegments(llp transport.LLP, room int64) (weight int64) {
	f := &s.fill
	if f.next == f.posted || !isPlain(*f.ring.At(f.next)) {
		return 0
	}
	segments := f.sender.SegmentSender(llp, QNSend)
	for weight < room && f.next < f.posted {
		r := *f.ring.At(f.next)
		if !isPlain(r) || s.answerable.Load() || s.ending() {
			break
		}
		if !r.usable() || !emitSegment(&segments, r) {
			break
		}
		f.tally.count(&s.stats.out, r.opcode(), 1, r.Len)
		weight += int64(r.Len) + messageCost
		f.next++
	}
	segments.Done()
	if weight > 0 {
		f.lead = 0 // no response was waiting
	}
	return weight
}

// isPlain reports whether r is a Send or a Write from one place, without any flags.
func isPlain(r *Request) bool {
	return (r.Kind == KindSend || r.Kind == KindWrite) && r.Flags == 0 && len(r.Spans) == 1
}

// emitSegment puts r, which isPlain, into the batch. false: it is not for a SegmentSender.
func emitSegment(w *ddp.SegmentSender, r *Request) (ok bool) {
	if r.Kind == KindWrite {
		return w.EmitTagged(OpWrite.control(), r.Remote.STag, r.Remote.TO, &r.Spans[0], false)
	}
	msn, ok := w.Emit(OpSend.control(), &r.Spans[0], false)
	if ok {
		r.msn = msn
	}
	return ok
}
