package host

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// ErrQueueFull: the I/O queues have as many outstanding commands as they take.
var ErrQueueFull = errors.New("nvme: the I/O queues are full")

// A Transfer is a Read or a Write that runs while its caller does something else, for programs that keep many outstanding
// without a goroutine for each. It is one command: it is neither split nor sent again, and cannot be cancelled.
type Transfer struct {
	// Write says that P is written; otherwise it is read.
	Write bool
	// P belongs to the Transfer until Done is called. Its length is a multiple of Namespace.BlockSize, and not more than
	// Options.MaxTransfer and the target allow.
	P   []byte
	Off int64 // octets, a multiple of Namespace.BlockSize
	// Done is called once when the Transfer has ended, by a goroutine that handles responses: it must not wait. It may call Start,
	// even for this Transfer, but no other method of the host. The Transfers that consecutive calls start are sent together.
	Done func(t *Transfer)
	// Err is the outcome of the Transfer when Done is called: an error like those of Namespace.ReadAt.
	Err error
}

// Start starts Transfers, and does not wait. It returns how many it has started. The others were not started because of the
// error, and their Done is not called. The error is ErrQueueFull if there is no room for more now, a *LostError while there
// is no connection, or one of ReadAt.
func (n *Namespace) Start(t ...*Transfer) (started int, err error) {
	a, err := n.c.connected()
	if err != nil {
		return 0, err
	}
	for _, one := range t {
		if err = n.start(a, one); err != nil {
			break
		}
		started++
	}
	for _, q := range a.io {
		q.push()
	}
	return started, err
}

// connected returns the current association.
func (c *Controller) connected() (*assoc, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return nil, c.err
	case c.assoc == nil:
		return nil, &LostError{Cause: ErrLost}
	}
	return c.assoc, nil
}

func (n *Namespace) start(a *assoc, t *Transfer) error {
	s := n.state.Load()
	if err := s.check(t.Off, int64(len(t.P))); err != nil {
		return err
	}
	if len(t.P) == 0 || len(t.P) > a.transfer {
		return fmt.Errorf("nvme: a Transfer of %d octets, which are not 1 to %d: %w", len(t.P), a.transfer, ErrOutOfRange)
	}
	m := capsule.RW{Opcode: capsule.OpRead, NSID: n.nsid, SLBA: uint64(t.Off) >> s.geometry.LBADS, NLB: uint16(len(t.P)>>s.geometry.LBADS - 1)}
	if t.Write {
		m.Opcode = capsule.OpWrite
	}
	q, slot := a.room()
	if q == nil {
		return ErrQueueFull
	}
	slot.to, slot.transfer = toTransfer, t
	if err := q.add(slot, &command{sqe: m.SQE(0, capsule.SGL{}), data: t.P, timeout: n.c.o.IOTimeout}); err != nil {
		slot.to, slot.transfer = toSender, nil
		q.giveBack(slot)
		return err
	}
	return nil
}

// room takes a slot of the first I/O queue in turn that has a free one. nil: there is none.
func (a *assoc) room() (*queue, *slot) {
	for range a.io {
		q := a.queue()
		select {
		case s := <-q.free:
			return q, s
		default:
		}
	}
	return nil, nil
}

// over ends a Transfer: callDone calls its Done. The mutex must be held.
func (q *queue) over(s *slot, err error) {
	t := s.transfer
	if err == nil {
		err = s.cqe.Status.Err()
	}
	t.Err, s.to, s.transfer = err, toSender, nil
	q.giveBack(s)
	q.ended = append(q.ended, t)
}

// callDone calls Done of the Transfers that have ended. The mutex must be held; callDone releases it meanwhile.
func (q *queue) callDone() {
	for len(q.ended) > 0 {
		list := q.ended
		q.ended, q.calling = q.calling[:0], nil
		q.mu.Unlock()
		for _, t := range list {
			t.Done(t)
		}
		clear(list)
		q.mu.Lock()
		q.calling = list[:0]
	}
}
