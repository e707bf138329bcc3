package rdmap

import (
	"errors"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/ring"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

const (
	// quantum is after how many octets one call of Fill stops: others want to send.
	quantum = 1 << 20
	// messageCost is added to the octets of a message, so that many small ones weigh
	// what they cost.
	messageCost = 64
)

// sending says what the message in the making is.
type sending uint8

const (
	sendingNothing sending = iota
	sendingRequest
	sendingResponse
	sendingTerminate
)

// A filler is what the sending goroutine has for itself: it takes the lock once to
// see what was posted, and again to tell how far it got, but not for each request.
type filler struct {
	sender ddp.Sender
	now    sending
	out    ddp.Message    // the message now
	req    *Request       // sendingRequest
	in     *Inbound       // sendingResponse
	source [1]stag.Span   // of out, if it is not the request's Spans
	pinned []*stag.Region // what the batch refers to on behalf of the peer
	due    []*Inbound     // those that a run of responses answers
	wire   []byte         // what source names, if it is a header

	ring   ring.Ring[*Request] // the send queue as last seen
	posted uint64
	next   uint64 // the request to fill next

	tally tally // of what is in the batch

	lead int64 // by how much responses are ahead of requests, where both are waiting
	err  error
}

// Fill appends what is ready to llp's batch: a Terminate first and then nothing else,
// otherwise the requests and the responses of this side in their orders, and in turn
// by octets where both are waiting. Messages are not interleaved. It reports more if
// it stopped because the batch is full, or because it has filled about a mebibyte and
// there is more: flush and call again. Without more, everything that is ready is in the batch.
//
// Every Fill is followed by [Stream.Flush]. After a batch is out Flushed must be called, also if nothing was in it: a request
// that waits for earlier ones to complete may then be ready.
//
// An error is a *[transport.Fault] or *[ddp.SegmentError] about this side: a request
// or a response cannot be sent. The owner calls Terminate with it.
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
		if err != nil {
			return false, err
		}
		n := int64(f.out.Sent()-before) + messageCost
		room -= n
		f.turn(n)
		if !done {
			return true, nil
		}
		s.finish()
	}
	return f.now != sendingNothing || s.answerable.Load() || s.requestReady(), nil
}

// fillBatched puts messages that go out together into the batch, until something else is to be sent first.
// It returns what it weighs, about as much as room at most.
func (s *Stream) fillBatched(llp transport.LLP, room int64) (weight int64) {
	weight = s.fillResponses(llp)
	weight += s.fillSegments(llp, room-weight)
	return weight + s.fillReads(llp)
}

// opening reports whether the RTR has still to be sent. A responder that does not wait for
// it may have asked for something already (RFC 6581 section 5).
func (s *Stream) opening() bool { return s.fill.next < s.sq.first }

// turn counts n octets of the message now for its side.
func (f *filler) turn(n int64) {
	if f.now == sendingRequest {
		n = -n
	}
	f.lead += n
}

// nextMessage opens the message that is to be sent next. false: nothing is ready.
func (s *Stream) nextMessage() (bool, error) {
	f := &s.fill
	for {
		response, request := s.answerable.Load(), s.requestReady()
		if !response || !request {
			f.lead = 0 // a side that was idle has saved nothing
		}
		switch {
		case response && !s.opening() && (!request || f.lead <= 0):
			return true, s.openResponse()
		case !request:
			return false, nil
		}
		r := *f.ring.At(f.next)
		if !r.Kind.local() {
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

// requestReady reports whether the request to fill next is there and may start.
func (s *Stream) requestReady() bool {
	f := &s.fill
	if f.next < f.posted {
		if r := *f.ring.At(f.next); !r.mustWait() {
			return true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
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
		err = s.failRequest(f.req, sourceStatus(err), err)
	}
	return done, err
}

// finish closes the message that is all in the batch.
func (s *Stream) finish() {
	f := &s.fill
	if f.now == sendingResponse {
		s.finishResponse()
	} else {
		f.tally.count(&s.stats.out, opcodeOf(f.out.RsvdULP), 1, f.out.Sent())
		if f.out.Tagged && f.req.Flags&WithImmediate != 0 {
			s.openImmediate(f.req)
			return
		}
		f.next++
	}
	f.now, f.req, f.in = sendingNothing, nil, nil
}

// publish tells the other goroutines how far the sending one got.
func (s *Stream) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sq.filled = s.fill.next
	s.unfinished = s.fill.now
	s.completeInOrder()
}

// Flush flushes what was filled, without waiting. Memory that the peer reads is
// pinned for this long and no longer: what cannot leave yet is copied.
func (s *Stream) Flush(llp transport.LLP) error {
	err := llp.Flush(false)
	f := &s.fill
	if len(f.pinned) == 0 {
		return err
	}
	if errors.Is(err, transport.ErrAgain) || errors.Is(err, transport.ErrFenced) {
		llp.Stage()
	}
	for i, r := range f.pinned {
		r.Unpin()
		f.pinned[i] = nil
	}
	f.pinned = f.pinned[:0]
	return err
}

// Flushed tells that the LLP has taken responsibility for everything filled so far:
// Sends and Writes complete (RFC 5040 section 5.5 rule 14).
func (s *Stream) Flushed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sq.flush = s.sq.filled
	if s.end.terminate == terminateFilled {
		s.end.terminate = terminateSent
	}
	s.completeInOrder()
}
