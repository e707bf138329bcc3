package ddp

import (
	"errors"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A Queue holds the buffers of one untagged queue in the order in which they were
// posted: buffer k serves the k-th message after the last one delivered. Its calls
// come from the goroutine that is in [transport.LLP.Receive]; errors are treated
// as those of an [Upper]. One whose messages are delivered one by one embeds [NoBatch].
type Queue interface {
	// Posted is how many buffers there are.
	Posted() int

	// Buffer returns buffer k, which is less than Posted, for the message that h, lent
	// for the call, is of. It is borrowed until the next call of Deliver, and stays the
	// same until then.
	Buffer(k int, h *UntaggedHeader) []stag.Span

	// Missing is asked when a message is due and nothing is posted. nil: the stream
	// ends with 1/2/02, since RFC 5041 section 7.1 calls this a fault and not flow
	// control; [transport.ErrStall] holds the segment back.
	Missing() error

	// Deliver tells that a message of n octets is complete, and all messages before
	// it, and takes buffer 0 out of the queue. h is the header of its last segment.
	Deliver(h UntaggedHeader, n uint32) error

	// MayBatch reports whether messages like that of h may be delivered together with those
	// after them: nothing that their delivery does changes where the next belong, or
	// what [Upper.Untagged] says of them, which is the same for all with this RsvdULP.
	MayBatch(h *UntaggedHeader) bool

	// DeliverBatch is Deliver for as many messages as there are lengths, the first of them
	// that of h. It takes as many buffers out of the queue.
	DeliverBatch(h *UntaggedHeader, lens []uint32)
}

// NoBatch is the part of a [Queue] that delivers its messages one by one.
type NoBatch struct{}

// MayBatch is false for every message.
func (NoBatch) MayBatch(*UntaggedHeader) bool { return false }

// DeliverBatch is never called.
func (NoBatch) DeliverBatch(*UntaggedHeader, []uint32) {}

// An untaggedQueue is a bound queue, the number of the message that it awaits, and what has come of that.
type untaggedQueue struct {
	Queue
	qn     QN
	due    MSN
	placed coverage
}

// usualQueues is how many queues a stream of RDMAP has.
const usualQueues = 4

// Bind makes q the queue that messages for qn go to. It must be called before the
// first segment, and once per qn. Segments for any other queue end the stream.
// The queues are searched one by one: a stream should have a handful of them.
func (s *Stream) Bind(qn QN, q Queue) {
	if s.queue(qn) != nil {
		panic("ddp: queue bound twice")
	}
	s.queues = append(s.queues, untaggedQueue{Queue: q, qn: qn, due: firstMSN})
}

// queue finds the queue of qn, nil if there is none.
func (s *Stream) queue(qn QN) *untaggedQueue {
	for i := range s.queues {
		if q := &s.queues[i]; q.qn == qn {
			return q
		}
	}
	return nil
}

// errNotPosted tells that a segment came before its turn and its buffer may yet be
// posted.
var errNotPosted = errors.New("ddp: no buffer posted yet")

// buffer finds the buffer for the message of h. A segment whose turn it is belongs to
// the message that is due; an earlier one belongs to any message with a buffer.
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

// isDue refuses a message other than the one that is due. One that is further on
// may have a buffer too, but then the sender has left a message out or unfinished:
// it sends messages in their order (RFC 5041 section 5.3).
func (q *untaggedQueue) isDue(msn MSN) error {
	if msn != q.due {
		return transport.Faultf(transport.DDPMSNRange, "QN %d: MSN %d where %d is due", q.qn, msn, q.due)
	}
	return nil
}
