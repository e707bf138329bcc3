package ddp

import (
	"errors"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A Queue holds the buffers of one untagged queue in the order in which they were
// posted: buffer k is for the k-th message after the last one delivered. Its methods are
// called by the goroutine in [transport.LLP.Receive]; errors are treated like those of an
// [Upper]. A Queue whose messages are delivered one by one embeds [NoBatch].
type Queue interface {
	// Posted returns how many buffers are posted.
	Posted() int

	// Buffer returns buffer k, which is less than Posted, for the message with the header
	// h, which it must not retain. The buffer is borrowed until the next call of Deliver,
	// and stays the same until then.
	Buffer(k int, h *UntaggedHeader) []stag.Span

	// Missing is called when a message is due and no buffer is posted. nil: the stream
	// ends with 1/2/02, since RFC 5041 section 7.1 calls this a fault and not flow
	// control. [transport.ErrStall] holds the segment back.
	Missing() error

	// Deliver reports that a message of n octets, and all messages before it, are
	// complete. It removes buffer 0. h is the header of the message's last segment.
	Deliver(h UntaggedHeader, n uint32) error

	// MayBatch reports whether messages like that of h may be delivered together with
	// later ones: their delivery must not change where later messages belong, or what
	// [Upper.Untagged] returns for them, which is the same for all with this RsvdULP.
	MayBatch(h *UntaggedHeader) bool

	// DeliverBatch is Deliver for as many messages as there are lengths, of which h belongs
	// to the first. It removes as many buffers.
	DeliverBatch(h *UntaggedHeader, lens []uint32)
}

// NoBatch implements the methods of a [Queue] that delivers its messages one by one.
type NoBatch struct{}

// MayBatch returns false.
func (NoBatch) MayBatch(*UntaggedHeader) bool { return false }

// DeliverBatch is never called.
func (NoBatch) DeliverBatch(*UntaggedHeader, []uint32) {}

// An untaggedQueue is a bound queue, the number of the message that is due, and the parts of it that have arrived.
type untaggedQueue struct {
	Queue
	qn     QN
	due    MSN
	placed coverage
}

// usualQueues is how many queues an RDMAP stream has.
const usualQueues = 4

// Bind makes q the queue for messages to qn. It must be called before the first segment,
// and once per qn. Segments for any other queue end the stream. The search for a queue is
// linear: a stream should have only a few.
func (s *Stream) Bind(qn QN, q Queue) {
	if s.queue(qn) != nil {
		panic("ddp: queue bound twice")
	}
	s.queues = append(s.queues, untaggedQueue{Queue: q, qn: qn, due: firstMSN})
}

// queue returns the queue of qn, or nil if there is none.
func (s *Stream) queue(qn QN) *untaggedQueue {
	for i := range s.queues {
		if q := &s.queues[i]; q.qn == qn {
			return q
		}
	}
	return nil
}

// errNotPosted says that a segment arrived before its turn, and that its buffer may
// still be posted.
var errNotPosted = errors.New("ddp: no buffer posted yet")

// buffer returns the buffer for the message of h. A segment whose turn it is must belong
// to the message that is due; an early segment may belong to any message with a buffer.
func (q *untaggedQueue) buffer(h *UntaggedHeader, turn bool) ([]stag.Span, error) {
	if !turn {
		k := uint64(h.MSN.After(q.due))
		if k >= uint64(q.Posted()) {
			return nil, errNotPosted
		}
		return q.Buffer(int(k), h), nil
	}
	if err := q.isDue(h.MSN); err != nil {
		return nil, err
	}
	if q.Posted() > 0 {
		return q.Buffer(0, h), nil
	}
	if err := q.Missing(); err != nil {
		return nil, err
	}
	return nil, transport.Faultf(transport.DDPNoBuffer, "QN %d MSN %d", q.qn, h.MSN)
}

// isDue refuses a message other than the one that is due. A later message may have a
// buffer, too, but then the sender has omitted a message, or left it unfinished: messages
// must be sent in order (RFC 5041 section 5.3).
func (q *untaggedQueue) isDue(msn MSN) error {
	if msn != q.due {
		return transport.Faultf(transport.DDPMSNRange, "QN %d: MSN %d where %d is due", q.qn, msn, q.due)
	}
	return nil
}
