package rdmap

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A Stream is one end of an RDMAP stream. One goroutine at a time may send (Fill, Flush,
// Flushed), and one may receive (the methods of [transport.Placer], and BatchDone). All other
// methods are safe for concurrent use.
//
// A segment can queue responses, and can make requests ready that have waited for a response:
// call Pending after BatchDone. The same holds for Flushed and Post.
type Stream struct {
	config Config
	ddp    *ddp.Stream
	sinks  sinks
	fill   filler // used by the sending goroutine
	stats  stats
	tally  tally // used by the receiving goroutine
	// Used by the receiving goroutine: a request was answered since the last BatchDone; a message was
	// delivered since the last call of Publish.
	answers, delivered bool

	windows stag.Windows // the windows that are bound to this stream

	phase atomic.Uint32 // see phase
	// The response to the oldest request of the peer can be sent.
	answerable atomic.Bool

	mu         lockorder.Mutex[lockorder.Stream]
	sq         sendQueue
	unfinished sending        // the message that a full batch has interrupted
	orq        fifo[*Request] // requests that await their response, the oldest first
	replies    int            // how many requests in orq await a response on QN 3
	irq        fifo[*Inbound] // requests of the peer that await their response
	called     int            // how many requests in irq no longer need a call of Serve
	calling    bool           // a goroutine is calling Serve
	spare      fifo[*Inbound] // free buffers of QN 1, in the order of their use
	end        end
	gated      bool      // the Gate is shut: no request starts
	batches    uint64    // how often Flushed was called
	posting    holdCache // for the requests that Post queues; empty while mu is not held
	released   holdCache // for the requests that complete; likewise
}

// New returns a Stream. Connection set-up must be over.
func New(c Config) *Stream {
	c.IRD, c.ORD, c.SendDepth = max(c.IRD, 0), max(c.ORD, 0), max(c.SendDepth, 0)
	s := &Stream{config: c}
	s.sq.depth = uint64(c.SendDepth)
	s.ddp = ddp.New(ddp.Config{Table: c.Table, Scope: c.Scope, Upper: upper{s}, Window: c.Window})
	s.sinks.init(s)
	s.ddp.Bind(QNSend, &s.sinks.send)
	s.ddp.Bind(QNRequest, &s.sinks.request)
	s.ddp.Bind(QNTerminate, &s.sinks.terminate)
	if c.ORD > 0 {
		s.ddp.Bind(QNResponse, &s.sinks.response)
	}
	s.shutGate(c.Gate)
	if c.RTR != 0 || len(c.First) > 0 {
		s.postFirst(c.RTR, c.First)
	}
	return s
}

// sinks are the queues of untagged messages.
type sinks struct {
	send      sendSink
	request   requestSink
	terminate terminateSink
	response  responseSink
}

func (q *sinks) init(s *Stream) {
	q.send.ReceiveQueue, q.send.s = s.config.Receives, s
	q.request.s, q.request.size = s, requestLen(s.config.Extensions)
	q.terminate.init(s)
	q.response.s = s
}

// postFirst posts the RTR, or instead of it a message of the owner.
func (s *Stream) postFirst(m transport.RTR, message []byte) {
	r := s.sq.tail()
	switch {
	case len(message) > 0:
		r.Kind, r.Inlined, r.Inline = KindSend, true, append(r.Inline, message...)
		_ = r.prepare() // cannot fail
	case m == transport.RTRSend:
		r.Kind = KindSend
	case m == transport.RTRRead:
		r.Kind = KindRead
	default:
		r.Kind = KindWrite
	}
	r.quiet = true
	s.sq.first, s.sq.posted = 1, 1
}

// Post passes n empty requests to fill, one after the other, and queues them. It stops at
// the first error: an error of fill, [ErrQueueFull], [ErrEnded], or [ErrRequest] for an
// invalid request. The requests before it stay queued. fill must not call the Stream. The
// requests of concurrent calls of Post are not interleaved.
func (s *Stream) Post(n int, fill func(i int, r *Request) error) (posted int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.posting.flush()
	for ; posted < n; posted++ {
		switch {
		case s.in() != phaseOpen:
			return posted, ErrEnded
		case s.sq.full():
			return posted, ErrQueueFull
		}
		r := s.sq.tail()
		err := fill(posted, r)
		if err == nil {
			err = r.prepare()
		}
		if err != nil {
			r.reset()
			return posted, err
		}
		if !r.held { // by Hold
			r.hold(&s.posting)
		}
		s.sq.posted++
	}
	return posted, nil
}

// prepare checks a new request and computes its Len.
func (r *Request) prepare() error {
	if r.Inlined || r.Kind >= KindAtomic {
		r.Spans = append(r.Spans[:0], stag.Span{Mem: r.Inline, Len: len(r.Inline)})
	}
	r.Len = stag.TotalLen(r.Spans)
	if r.Len > math.MaxUint32 {
		return r.refused("%d octets, a message has at most %d", r.Len, uint32(math.MaxUint32))
	}
	if r.Flags&WithImmediate != 0 && r.Kind != KindWrite {
		return r.refused("Immediate Data can follow a Write only")
	}
	switch r.Kind {
	case KindSend, KindImmediate, KindWrite, KindInvalidate:
		return nil
	case KindAtomic:
		r.Len = stag.AtomicLen
		if len(r.Inline) != AtomicRequestLen {
			return r.refused("%d octets inline, an Atomic Request has %d", len(r.Inline), AtomicRequestLen)
		}
		return nil
	case KindRegister, KindBind:
		if r.Enable == nil {
			return r.refused("Enable is not set")
		}
		if r.Kind == KindBind && (len(r.Spans) != 1 || r.Spans[0].Region == nil) {
			return r.refused("a window is bound to one region")
		}
		return nil
	case KindRead:
		if len(r.Spans) > 1 || (r.Len > 0 && r.Spans[0].Region == nil) {
			return r.refused("the sink of a Read must be one span of a region, not %d octets in %d spans", r.Len, len(r.Spans))
		}
		return nil
	case KindExtension:
		if r.Ext == nil {
			return r.refused("Ext is not set")
		}
		if len(r.Inline) > r.Ext.MaxRequest {
			return r.refused("%d octets inline, the extension accepts at most %d", len(r.Inline), r.Ext.MaxRequest)
		}
		return nil
	}
	return r.refused("there is no such kind")
}

// refused returns an error of prepare. It is a function of its own to keep prepare small.
func (r *Request) refused(format string, args ...any) error {
	return fmt.Errorf("%w: %v: %s", ErrRequest, r.Kind, fmt.Sprintf(format, args...))
}

// Pending reports whether Fill has something to append.
func (s *Stream) Pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ending():
		return s.end.terminate == terminateQueued
	case s.gated:
		return false
	case s.unfinished != sendingNothing || s.answerable.Load():
		return true
	}
	return s.sq.filled < s.sq.posted && s.startable(s.sq.at(s.sq.filled), s.sq.filled)
}

// Unsent reports whether a request was posted that Fill has not appended yet, or not in full.
func (s *Stream) Unsent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sq.filled < s.sq.posted
}

// Counts returns how many requests were posted and how many have completed, an RTR
// included.
func (s *Stream) Counts() (posted, completed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sq.posted, s.sq.head
}

// Unfinished returns how many requests have not completed, an RTR included, and how many
// of the peer's have not been answered.
func (s *Stream) Unfinished() (sq, irq int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.sq.posted - s.sq.head), s.irq.len()
}

// BatchDone must be called after a batch of segments, before the receiving goroutine waits for
// more or reports completions. Requests whose responses have arrived complete, and Stats
// includes the batch.
func (s *Stream) BatchDone() {
	s.tally.settle(&s.stats.in)
	if !s.answers {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = false
	s.completeInOrder(true)
}
