package rdmap

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/transport"
)

// fillSegments appends a series of Sends and Writes, of one segment each, to the batch, as long as
// no other message must be sent first. nextMessage handles the request at which it stops. It
// returns their weight, which exceeds room only a little.
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

// isPlain reports whether r is a Send or a Write from one span, without any flags.
func isPlain(r *Request) bool {
	return (r.Kind == KindSend || r.Kind == KindWrite) && r.Flags == 0 && len(r.Spans) == 1
}

// emitSegment appends r, for which isPlain holds, to the batch. It reports false if the
// SegmentSender cannot do that.
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
