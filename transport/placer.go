package transport

// A Placer takes what an LLP receives. It is DDP.
//
// A Placer that takes segments one by one calls [EachSegment] in Segments, and one that
// predicts nothing embeds [NoPrediction].
type Placer interface {
	// Segment takes one whole segment, its digest verified. seq is its place in the
	// sender's order, counted from 0 without gaps. The octets are lent for the call.
	Segment(seq uint64, ulpdu []byte) error

	// Segments takes the segments of a batch until its Next returns nil, or up to the
	// first for which it has an error. There is at least one. seq is the place of the
	// first in the sender's order. An LLP that keeps that order may call Segments once in
	// place of Segment for each: the calls through the layers cost more than the octets of
	// a small segment.
	Segments(seq uint64, batch SegmentBatch) error

	// Predict appends to dst the segments that come next if the peer does nothing but
	// what it was asked for (the responses to RDMA Reads, say), in order and without a
	// gap: as many as fit into room octets of payload, each of size octets with its
	// header unless a message ends with it. The LLP may then read straight into place.
	// The memory is pinned until Unpin, so the LLP must not wait until then. No two of the
	// segments overlap. With alone no segment lies where another peer may write: octets that
	// are verified in place must not change meanwhile.
	//
	// The peer's headers do not choose where the octets go: they go where this side expects
	// them, into memory whose contents are undefined until they have come. Nothing is
	// delivered before it is verified.
	Predict(dst []PredictedSegment, size, room int, alone bool) []PredictedSegment
	// Unpin ends what Predict began.
	Unpin()
	// Placed takes a segment that has come as predicted, whole and verified, in place of
	// Segment. It must be called after Unpin.
	Placed(seq uint64, p *PredictedSegment) error
}

// A SegmentBatch is the segments that have come by now, in the sender's order and without
// a gap: each of them whole, its digest verified.
type SegmentBatch interface {
	// Next returns the next segment, and nil if no more of them is whole. With that the
	// one before it counts as taken; what it returned last, if not nil, is presented again
	// after ErrStall. All octets are lent until the call that the batch was lent for ends.
	Next() []byte
}

// EachSegment is the Segments of a [Placer] that takes segments one by one.
func EachSegment(p Placer, seq uint64, batch SegmentBatch) error {
	for ulpdu := batch.Next(); ulpdu != nil; ulpdu = batch.Next() {
		if err := p.Segment(seq, ulpdu); err != nil {
			return err
		}
		seq++
	}
	return nil
}

// PredictedHeadLen is the length of the header of a segment that can be predicted, a
// tagged one of DDP.
const PredictedHeadLen = 14

// A PredictedSegment is a segment that has not come yet.
type PredictedSegment struct {
	Head    [PredictedHeadLen]byte // octet for octet
	Payload []byte                 // where the rest of it belongs
	Began   uint64                 // the Placer's own
}

// NoPrediction is the part of a [Placer] that predicts nothing.
type NoPrediction struct{}

// Predict appends nothing.
func (NoPrediction) Predict(dst []PredictedSegment, _, _ int, _ bool) []PredictedSegment { return dst }

// Unpin has nothing to do.
func (NoPrediction) Unpin() {}

// Placed is never called.
func (NoPrediction) Placed(uint64, *PredictedSegment) error { return nil }
