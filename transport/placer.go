package transport

// A Placer accepts the segments that an LLP receives. DDP implements it.
//
// A Placer that processes segments one by one can implement Segments by [EachSegment]. A
// Placer that predicts no segments can embed [NoPrediction].
type Placer interface {
	// Segment processes one complete segment, whose digest was verified. seq is its
	// position in the sender's order, counted from 0 without gaps. The Placer must not
	// retain ulpdu.
	Segment(seq uint64, ulpdu []byte) error

	// Segments processes the segments of a batch until its Next returns nil, or until a
	// segment causes an error. The batch has at least one segment. seq is the position of
	// the first in the sender's order. An LLP that preserves that order may call Segments
	// once instead of Segment for each, because for small segments the calls through the
	// layers cost more than the data.
	Segments(seq uint64, batch SegmentBatch) error

	// Predict appends to dst the segments that arrive next if the peer sends only what was
	// requested (the responses to RDMA Reads, for example), in order and without a gap:
	// at most as many as fit into room octets of payload, each of size octets with its header,
	// unless a message ends with it. The LLP may then read into their destinations
	// directly. The memory is pinned until Unpin, so the LLP must not wait before that.
	// The segments do not overlap, and none lies in memory that another peer may write:
	// data that is verified in place must not change meanwhile, nor may data of another
	// message that has arrived there instead.
	//
	// The headers of the peer do not determine where the data goes. It goes where this
	// side expects it, into memory whose contents are undefined until it has arrived.
	// Nothing is delivered before it is verified.
	Predict(dst []PredictedSegment, size, room int) []PredictedSegment
	// Unpin releases the memory that Predict has pinned.
	Unpin()
	// Placed processes a segment that has arrived as predicted, complete and verified. It
	// is called instead of Segment, after Unpin.
	Placed(seq uint64, p *PredictedSegment) error
}

// A SegmentBatch holds the segments that have arrived, in the sender's order and without a
// gap: each of them complete, with a verified digest.
type SegmentBatch interface {
	// Next returns the next segment, or nil if no other segment is complete. A call of
	// Next accepts the segment that the previous call returned; a segment that was
	// returned but not accepted is presented again after ErrStall. The segments, and the
	// batch, must not be used after Segments has returned.
	Next() []byte
}

// EachSegment implements Segments for a [Placer] that processes segments one by one.
func EachSegment(p Placer, seq uint64, batch SegmentBatch) error {
	for ulpdu := batch.Next(); ulpdu != nil; ulpdu = batch.Next() {
		if err := p.Segment(seq, ulpdu); err != nil {
			return err
		}
		seq++
	}
	return nil
}

// PredictedHeadLen is the length of the header of a segment that can be predicted: a tagged
// DDP segment.
const PredictedHeadLen = 14

// A PredictedSegment describes a segment that has not arrived yet.
type PredictedSegment struct {
	Head    [PredictedHeadLen]byte // its header
	Payload []byte                 // the destination of its payload
	Began   uint64                 // for the use of the Placer
}

// NoPrediction implements the methods of a [Placer] that predicts no segments.
type NoPrediction struct{}

// Predict appends nothing.
func (NoPrediction) Predict(dst []PredictedSegment, _, _ int) []PredictedSegment { return dst }

// Unpin does nothing.
func (NoPrediction) Unpin() {}

// Placed is never called.
func (NoPrediction) Placed(uint64, *PredictedSegment) error { return nil }
