package ddp

import (
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// Wholes emits many messages for one untagged queue, each of which is one segment. What
// is the same for all of them is found out once. It is good for one batch of the LLP, and
// until the Sender is used otherwise.
type Wholes struct {
	sender *Sender
	llp    transport.LLP
	queue  *sendQueue
	room   int // octets of payload of a segment
	digest bool
}

// Wholes begins to emit messages to qn. Done must follow.
func (s *Sender) Wholes(llp transport.LLP, qn QN) Wholes {
	return Wholes{
		sender: s, llp: llp, queue: s.queue(qn), room: llp.MaxULPDU() - UntaggedLen, digest: llp.Caps().Digest,
	}
}

// Emit is [Sender.Emit] of a message whose payload is all of source, without Stage. false: it is for
// that, since it is more than one segment, or not in memory, or the batch is full. The
// caller holds the region of source.
func (w *Wholes) Emit(rsvdULP uint8, source *stag.Span) (msn MSN, ok bool) {
	if source.Len > w.room || source.Len == 0 {
		return 0, false
	}
	p := source.Memory()
	if p == nil {
		return 0, false
	}
	s := w.sender
	s.payload = append(s.payload[:0], p)
	msn = w.queue.next
	h := UntaggedHeader{RsvdULP: rsvdULP, QN: w.queue.qn, MSN: msn}
	h.putWhole(&s.head)
	if !w.llp.Append(s.head[:], s.payload, w.digest && source.Region != nil && source.Region.PeersMayWrite()) {
		return 0, false
	}
	w.queue.next = msn.Next()
	return msn, true
}

// Done forgets the memory of the callers.
func (w *Wholes) Done() {
	clear(w.sender.payload)
	w.sender.payload = w.sender.payload[:0]
}
