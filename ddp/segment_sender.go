package ddp

import (
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A SegmentSender emits many messages of one segment each: tagged ones, and messages for one
// untagged queue. It determines only once what is the same for all of them. It may be used for
// one batch of the LLP, until the Sender is used in another way.
type SegmentSender struct {
	sender *Sender
	llp    transport.LLP
	queue  *sendQueue
	room   int // octets of a segment
	digest bool
}

// SegmentSender begins to emit messages, the untagged ones to qn. Done must follow.
func (s *Sender) SegmentSender(llp transport.LLP, qn QN) SegmentSender {
	return SegmentSender{sender: s, llp: llp, queue: s.queue(qn), room: llp.MaxULPDU(), digest: llp.Caps().Digest}
}

// Emit is [Sender.Emit] for an untagged message whose payload is all of source; stage is as in a
// [Message]. If ok is false the caller must use Sender.Emit: the message needs more than one segment,
// or is not in memory, or the batch is full. The caller holds the region of source.
func (w *SegmentSender) Emit(rsvdULP uint8, source *stag.Span, stage bool) (msn MSN, ok bool) {
	h := UntaggedHeader{RsvdULP: rsvdULP, QN: w.queue.qn, MSN: w.queue.next}
	h.putWhole(&w.sender.head)
	if !w.append(UntaggedLen, source, stage) {
		return 0, false
	}
	msn = w.queue.next
	w.queue.next = msn.Next()
	return msn, true
}

// EmitTagged is Emit for a message to an STag of the peer.
func (w *SegmentSender) EmitTagged(rsvdULP uint8, st stag.STag, to uint64, source *stag.Span, stage bool) bool {
	h := TaggedHeader{RsvdULP: rsvdULP, STag: st, TO: to}
	h.putWhole(&w.sender.head)
	return w.append(TaggedLen, source, stage)
}

// append appends the segment of source to the batch, after the first head octets of the
// sender's head.
func (w *SegmentSender) append(head int, source *stag.Span, stage bool) bool {
	if source.Len > w.room-head || source.Len == 0 {
		return false
	}
	p := source.Memory()
	if p == nil {
		return false
	}
	s := w.sender
	s.payload = append(s.payload[:0], p)
	if source.Region != nil && source.Region.Flusher() != nil {
		prefault(w.llp, s.payload)
	}
	return w.llp.Append(s.head[:head], s.payload, stage || w.digest && source.Region != nil && source.Region.PeersMayWrite())
}

// Done drops the references to the memory of the callers.
func (w *SegmentSender) Done() {
	clear(w.sender.payload)
	w.sender.payload = w.sender.payload[:0]
}
