package rdmap

import (
	"errors"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/ring"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

const (
	// quantum is the number of octets after which a call of Fill stops, so that the
	// caller can flush the batch.
	quantum = 1 << 20
	// messageCost is added to the octets of a message, so that the weight of a small
	// message accounts for its processing.
	messageCost = 64
)

// sending is the kind of the current message.
type sending uint8

const (
	sendingNothing sending = iota
	sendingRequest
	sendingResponse
	sendingTerminate
)

// A filler is the state of the sending goroutine. With its copy of the send queue, the
// goroutine takes the lock once to read what was posted and once to publish its progress,
// but not for each request.
type filler struct {
	sender ddp.Sender
	now    sending
	out    ddp.Message    // the current message
	req    *Request       // of the current message, with sendingRequest
	in     *Inbound       // of the current message, with sendingResponse
	source [3]stag.Span   // the source of out, unless that is the Spans of the request
	pinned []*stag.Region // regions that the peer reads from, pinned for the batch
	due    []*Inbound     // requests that fillResponses answers together
	wire   []byte         // the memory of source, if that is a header

	ring   ring.Ring[*Request] // copy of the send queue
	posted uint64              // likewise
	next   uint64              // the request to fill next

	tally tally // counts messages in the batch

	lead int64 // octets of responses minus octets of requests, while both wait
	err  error
}

// Fill appends what is ready to the batch of llp. On a stream that is ending this is only
// the Terminate. Otherwise it appends the requests and the responses of this side, each in
// their order; if both wait, it alternates so that both send equally many octets. Messages
// are not interleaved. Fill reports more if it has stopped because the batch is full, or
// because it has appended about a mebibyte: flush and call it again. If it does not report
// more, everything that is ready is in the batch.
//
// Call [Stream.Flush] after each Fill. Call Flushed after a batch was sent, even if it was
// empty: a request that waits for the completion of earlier ones may then be ready. While a
// [Gate] is shut only a Terminate is ready.
//
// An error is a *[transport.Fault] or *[ddp.SegmentError]: a request or a response cannot be
// sent. The owner must call Terminate with it.
func (s *Stream) Fill(llp transport.LLP) (more bool, err error) {
	if s.ending() {
		more, err = s.fillTerminate(llp)
	} else if s.fill.err == nil {
		more, err = s.fillBatch(llp)
		s.fill.err = err
	} else {
		err = s.fill.err
	}
	s.fill.tally.settle(&s.stats.out)
	s.publish()
	return more, err
}

func (s *Stream) fillBatch(llp transport.LLP) (more bool, err error) {
	f := &s.fill
	for room := int64(quantum); room > 0; {
		if s.ending() {
			return s.fillTerminate(llp)
		}
		if f.now == sendingNothing {
			if room -= s.fillBatched(llp, room); room <= 0 {
				break
			}
			if ok, err := s.nextMessage(); !ok || err != nil {
				return s.flushFirst(), err
			}
		}
		before := f.out.Sent()
		done, err := s.emit(llp)
		octets := f.out.Sent() - before
		f.tally.count(&s.stats.out, opcodeOf(f.out.RsvdULP), 0, octets)
		if err != nil {
			return false, err
		}
		n := int64(octets) + messageCost
		room -= n
		f.turn(n)
		if !done {
			return true, nil
		}
		s.finish()
	}
	return f.now != sendingNothing || s.answerable.Load() || s.requestReady(), nil
}

// fillBatched appends series of small messages to the batch, until another message must be
// sent first. It returns their weight, which exceeds room only a little.
func (s *Stream) fillBatched(llp transport.LLP, room int64) (weight int64) {
	weight = s.fillResponses(llp)
	weight += s.fillSegments(llp, room-weight)
	return weight + s.fillReads(llp)
}

// opening reports whether the RTR is still to be sent. A responder that does not wait for the
// RTR may have sent a request already (RFC 6581 section 5).
func (s *Stream) opening() bool { return s.fill.next < s.sq.first }

// turn adds n octets of the current message to the lead.
func (f *filler) turn(n int64) {
	if f.now == sendingRequest {
		n = -n
	}
	f.lead += n
}

// nextMessage makes the next message the current message. It reports false if none is ready.
func (s *Stream) nextMessage() (bool, error) {
	f := &s.fill
	for {
		response, request := s.answerable.Load(), s.requestReady()
		if !response || !request {
			f.lead = 0 // responses, or requests, that were idle get no credit for that
		}
		switch {
		case response && !s.opening() && (!request || f.lead <= 0):
			return true, s.openResponse()
		case !request:
			return false, nil
		}
		r := *f.ring.At(f.next)
		switch {
		case r.admission == Skip:
			s.skip(r)
			continue
		case !r.Kind.local():
			return true, s.openRequest(r)
		}
		if s.flushFirst() {
			return false, nil
		}
		if err := s.doLocal(r); err != nil {
			return false, err
		}
	}
}

// requestReady reports whether there is a request to fill that may start.
func (s *Stream) requestReady() bool {
	f := &s.fill
	if f.next < f.posted {
		if r := *f.ring.At(f.next); !r.mustWait() {
			return true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gated {
		return false
	}
	f.ring, f.posted = s.sq.ring, s.sq.posted
	return f.next < f.posted && s.startable(*f.ring.At(f.next), f.next)
}

func (s *Stream) emit(llp transport.LLP) (done bool, err error) {
	f := &s.fill
	if f.now == sendingResponse {
		return s.emitResponse(llp)
	}
	done, err = f.sender.Emit(llp, &f.out)
	if err != nil {
		err = s.failRequest(f.req, StatusLocalOp, err)
	}
	return done, err
}

// finish ends the current message, all of which is in the batch.
func (s *Stream) finish() {
	f := &s.fill
	if f.now == sendingResponse {
		s.finishResponse()
	} else {
		f.tally.count(&s.stats.out, opcodeOf(f.out.RsvdULP), 1, 0)
		if f.out.Tagged && f.req.Flags&WithImmediate != 0 {
			s.openImmediate(f.req)
			return
		}
		f.next++
	}
	f.now, f.req, f.in = sendingNothing, nil, nil
}

// publish makes the progress of the sending goroutine visible to other goroutines.
func (s *Stream) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sq.filled = s.fill.next
	s.unfinished = s.fill.now
	s.completeInOrder(false)
}

// Flush flushes the batch, without waiting. Regions that the peer reads from are pinned only
// until then: data that the network does not accept yet is copied.
func (s *Stream) Flush(llp transport.LLP) error {
	err := llp.Flush(false)
	f := &s.fill
	if len(f.pinned) == 0 {
		return err
	}
	if errors.Is(err, transport.ErrAgain) || errors.Is(err, transport.ErrFenced) {
		llp.Stage()
		f.sender.Release()
	}
	for i, r := range f.pinned {
		r.Unpin()
		f.pinned[i] = nil
	}
	f.pinned = f.pinned[:0]
	return err
}

// Flushed reports that the LLP has accepted everything that was filled, so that Sends and
// Writes complete (RFC 5040 section 5.5 rule 14).
func (s *Stream) Flushed() {
	s.fill.sender.Release()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sq.flush = s.sq.filled
	s.batches++
	if s.end.terminate == terminateFilled {
		s.end.terminate = terminateSent
	}
	s.completeInOrder(false)
}
