package host

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// ErrQueueFull: as many commands are under way as the I/O queues take.
var ErrQueueFull = errors.New("nvme: the I/O queues are full")

// A Transfer is a Read or a Write that goes on while its caller does something else, for programs that keep many under way
// without a goroutine for each. It is one command: it is neither cut, nor sent again, nor can it be given up.
type Transfer struct {
	// Write tells that P is written; otherwise it is read.
	Write bool
	// P belongs to the Transfer until Done is called. Its length is a multiple of Namespace.BlockSize, and not more than
	// Options.MaxTransfer and the target allow.
	P   []byte
	Off int64 // octets, a multiple of Namespace.BlockSize
	// Done is called once when the Transfer has ended, by a goroutine that handles responses: it must not wait. It may call Start,
	// for this Transfer too, and no other method of the host. What all the calls start that follow one another is sent together.
	Done func(t *Transfer)
	// Err is how the Transfer has ended, when Done is called: as in the errors of Namespace.ReadAt.
	Err error
}

// Start starts Transfers, and waits for nothing. It returns how many it has started: those from t[n] on it has not, because of
// the error, and their Done is not called. The error is ErrQueueFull if there is room for no more now, a *LostError while
// there is no connection, or one of ReadAt.
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

// connected is the association there is now.
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

// room takes a slot of the first I/O queue in turn that has one. nil: there is none.
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

// over ends a Transfer: callDone calls its Done. The mutex is held.
func (q *queue) over(s *slot, err error) {
	t := s.transfer
	if err == nil {
		err = s.cqe.Status.Err()
	}
	t.Err, s.to, s.transfer = err, toSender, nil
	q.giveBack(s)
	q.ended = append(q.ended, t)
}

// callDone calls Done of the Transfers that have ended. The mutex is held, but not meanwhile.
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
