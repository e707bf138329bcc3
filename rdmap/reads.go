package rdmap

import (
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// readRun is how many small Reads, or responses to small Reads, are appended to the batch
// together, and readOctets how many octets of responses, before other messages are sent.
const (
	readRun    = 32
	readOctets = 128 << 10
)

// fillReads appends a series of Read Requests to the batch, as long as no other message must be
// sent first and the ORD permits. nextMessage handles the request at which it stops. It returns
// their weight.
func (s *Stream) fillReads(llp transport.LLP) (weight int64) {
	f := &s.fill
	if f.next == f.posted || !isPlainRead(*f.ring.At(f.next)) {
		return 0
	}
	room := s.freeReads(min(int(f.posted-f.next), readRun))
	segments := f.sender.SegmentSender(llp, QNRequest)
	n := 0
	for ; n < room && !s.answerable.Load() && !s.ending(); n++ {
		r := *f.ring.At(f.next + uint64(n))
		if !isPlainRead(r) || !f.askFor(r) {
			break
		}
		msn, ok := segments.Emit(OpReadRequest.control(), &f.source[0], true)
		if !ok {
			break
		}
		r.msn = msn
	}
	segments.Done()
	if n == 0 {
		return 0
	}
	s.await(n)
	f.lead = 0 // no response was waiting
	f.tally.count(&s.stats.out, OpReadRequest, uint64(n), uint64(n)*ReadRequestLen)
	return int64(n) * (ReadRequestLen + messageCost)
}

// isPlainRead reports whether r is a Read into a region, without any flags.
func isPlainRead(r *Request) bool {
	return r.Kind == KindRead && r.Flags == 0 && len(r.Spans) == 1 && r.Spans[0].Region != nil
}

// freeReads returns how many of the next n requests may be outstanding, and are admitted.
func (s *Stream) freeReads(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, s.config.ORD-s.orq.len())
	if s.config.Admit != nil {
		n = s.admitted(n)
	}
	return n
}

// askFor makes the Read Request of r the source. It reports false if the sink is not valid.
func (f *filler) askFor(r *Request) bool {
	if !r.takeSink() {
		return false
	}
	f.wire = ReadRequest{Sink: r.sink, Size: uint32(r.Len), Src: r.Remote}.Append(f.wire[:0])
	f.source[0] = stag.Span{Mem: f.wire, Len: len(f.wire)}
	return true
}

// await records that the next n requests, which are in the batch, wait for their responses. The
// batch was not sent yet.
func (s *Stream) await(n int) {
	f := &s.fill
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.orq.push(*f.ring.At(f.next))
		f.next++
	}
}

// fillResponses appends a series of responses to Reads, of one segment each, to the batch, as
// long as no request waits. nextMessage handles the response at which it stops. It returns their
// weight.
func (s *Stream) fillResponses(llp transport.LLP) (weight int64) {
	f := &s.fill
	if !s.answerable.Load() || s.requestReady() {
		return 0
	}
	f.due = s.plainReads(f.due[:0])
	segments := f.sender.SegmentSender(llp, QNResponse)
	n, digest := 0, llp.Caps().Digest
	for ; n < len(f.due) && weight < readOctets && !s.ending(); n++ {
		q := &f.due[n].read
		r, off, fault := s.source(*q)
		if fault != nil {
			break // emitResponse finds the fault again and reports it
		}
		from := stag.Span{Region: r, Off: off, Len: int(q.Size)}
		if !segments.EmitTagged(OpReadResponse.control(), q.Sink.STag, q.Sink.TO, &from, digest) {
			r.Unpin()
			break
		}
		f.pinned = append(f.pinned, r)
		weight += int64(q.Size) + messageCost
	}
	segments.Done()
	clear(f.due)
	if n > 0 {
		s.giveBackReads(n)
		f.lead = 0 // no request was waiting
		f.tally.count(&s.stats.out, OpReadResponse, uint64(n), uint64(weight)-uint64(n)*messageCost)
	}
	return weight
}

// plainReads appends the oldest requests of the peer to dst, up to the first that is not a Read,
// or is an empty Read.
func (s *Stream) plainReads(dst []*Inbound) []*Inbound {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range min(s.irq.len(), readRun) {
		in := s.irq.at(k)
		if in.read.Size == 0 { // also if it is not a Read
			break
		}
		dst = append(dst, in)
	}
	return dst
}

// giveBackReads is giveBack for the oldest n requests, which are Reads.
func (s *Stream) giveBackReads(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.popInbound()
	}
	s.lookAtAnswers()
}
