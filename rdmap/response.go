package rdmap

import (
	"math"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// openResponse makes the response to the oldest request of the peer the current message.
// Responses on QN 3 are staged, because the buffer of the request is reused before the batch
// was sent.
func (s *Stream) openResponse() error {
	f := &s.fill
	s.mu.Lock()
	in := s.irq.at(0)
	s.mu.Unlock()
	f.now, f.in = sendingResponse, in
	if in.fault != nil {
		return in.refuse(in.fault)
	}
	switch {
	case in.ext != nil:
		s.openReply(in.ext.Response, in.response)
	case in.isAtomic():
		return s.openAtomicResponse(in)
	default:
		f.out = ddp.Message{Tagged: true, RsvdULP: OpReadResponse.control(), STag: in.read.Sink.STag, TO: in.read.Sink.TO}
	}
	return nil
}

// openReply makes a response on QN 3 the current message.
func (s *Stream) openReply(op Opcode, octets []byte) {
	f := &s.fill
	f.source[0] = stag.Span{Mem: octets, Len: len(octets)}
	f.out = ddp.Message{
		RsvdULP: op.control(), QN: QNResponse, MSN: f.sender.NextMSN(QNResponse), Source: f.source[:1], Stage: true,
	}
}

// emitResponse appends as much of the response as fits. The source of a Read is pinned until
// the batch was flushed, without waiting. It may be invalidated between two batches, which ends
// the stream in the middle of the response. If the LLP computes digests the source is staged,
// because its contents may change at any time.
func (s *Stream) emitResponse(llp transport.LLP) (done bool, err error) {
	f := &s.fill
	in, sent := f.in, f.out.Sent()
	if in.read.Size > 0 {
		r, off, fault := s.source(in.read.after(sent))
		if fault != nil {
			return false, in.refuse(fault)
		}
		f.pinned = append(f.pinned, r)
		f.out.Stage = llp.Caps().Digest
		f.out.Source = spansOf(f.source[:0], r, off-sent, in.read.Size)
	}
	done, err = f.sender.Emit(llp, &f.out)
	if err != nil {
		err = in.refuse(asFault(transport.RDMAPStreamCatastrophic, err))
	}
	return done, err
}

// spansOf appends the n octets at off to dst: at most three spans, because an int may have 32 bits.
func spansOf(dst []stag.Span, r *stag.Region, off uint64, n uint32) []stag.Span {
	for n > 0 {
		k := min(n, math.MaxInt32)
		dst = append(dst, stag.Span{Region: r, Off: off, Len: int(k)})
		off += uint64(k)
		n -= k
	}
	return dst
}

// finishResponse returns the buffer of the request that was answered to QN 1.
func (s *Stream) finishResponse() {
	f := &s.fill
	f.tally.count(&s.stats.out, opcodeOf(f.out.RsvdULP), 1, 0)
	clear(f.source[:])

	if s.giveBack() {
		s.serveNext()
	}
}

// giveBack returns the buffer of the oldest request to QN 1. It reports whether that was an
// atomic operation, so that later requests of extensions may be ready to be served.
func (s *Stream) giveBack() (atomic bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.popInbound()
	s.lookAtAnswers()
	return in.isAtomic()
}

// popInbound returns the buffer of the oldest request to QN 1. Preconditions: s.mu is held.
func (s *Stream) popInbound() *Inbound {
	in := s.irq.pop()
	s.called = max(s.called-1, 0)
	in.state = inboundIdle
	s.spare.push(in)
	return in
}

// refuse returns the error that reports f for the request.
func (in *Inbound) refuse(f *transport.Fault) error {
	return &ddp.SegmentError{
		Fault:  f,
		Header: in.head.Append(nil),
		Len:    ddp.UntaggedLen + in.n - int(in.head.MO),
	}
}
