package rdmap

import (
	"github.com/goiwarp/iwarp/transport"
)

// A Stream is one end of an RDMAP stream.
type Stream struct {
	stats stats
}

// New returns a Stream in RDMA mode: MPA start-up is over.
func New(c Config) *Stream { return &Stream{} }

// Post hands n requests to fill.
func (s *Stream) Post(n int, fill func(i int, r *Request) error) (posted int, err error) {
	return 0, ErrEnded
}

// Pending reports whether Fill could send something now.
func (s *Stream) Pending() bool { return false }

// Idle returns the requests not completed and those of the peer not answered.
func (s *Stream) Idle() (sq, irq int) { return 0, 0 }

// Outstanding returns the requests that await a response.
func (s *Stream) Outstanding() int { return 0 }

// Fill appends what is ready to llp's batch.
func (s *Stream) Fill(llp transport.LLP) (more bool, err error) { return false, nil }

// Flushed tells that all that was filled is out.
func (s *Stream) Flushed() {}

// Segment takes one segment.
func (s *Stream) Segment(seq uint64, ulpdu []byte) error { return nil }

// Terminate queues a Terminate for cause.
func (s *Stream) Terminate(cause error) bool { return false }

// TerminateSent returns the Terminate that was sent, if one was.
func (s *Stream) TerminateSent() (t Terminate, sent bool) { return Terminate{}, false }

// End completes every request.
func (s *Stream) End() {}

// Payload returns the request.
func (in *Inbound) Payload() []byte { return in.request[:in.n] }

// Reply answers the request.
func (in *Inbound) Reply(p []byte) {}

// Fail ends the stream.
func (in *Inbound) Fail(f *transport.Fault) {}
