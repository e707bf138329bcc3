package target

import (
	"bytes"
	"context"
	"errors"

	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/target/internal/model"
)

// fill answers a command with data of the model.
func (tk *task) fill() {
	q, cur := tk.q, tk.current()
	acts := q.t.actions.get()
	q.mu.Lock()
	acts.list = q.m.Fill(tk.ref, tk.buf.mem[:tk.data.Length], acts.list)
	q.own(acts, &cur)
	q.mu.Unlock()
	tk.drop()
	q.t.perform(q, acts)
}

// finish ends a command with a status.
func (tk *task) finish(s capsule.Status) {
	q, cur := tk.q, tk.current()
	if s == capsule.StatusBusy {
		q.t.stats.busy.Add(1)
	}
	acts := q.t.actions.get()
	acts.turn = tk.turn
	q.mu.Lock()
	acts.list = q.m.Finish(tk.ref, s, acts.list)
	q.own(acts, &cur)
	q.mu.Unlock()
	tk.drop()
	q.t.perform(q, acts)
}

// submit passes a task to the workers of its namespace. In the turn of its queue, it executes the task at once if that takes
// no longer than passing it on.
func (tk *task) submit(turn bool) {
	n := tk.op.Namespace
	if n == nil && len(tk.op.Namespaces) == 1 {
		n = tk.op.Namespaces[0]
	}
	if n == nil {
		tk.q.t.flusher(tk.q.m.Controller()).submit(tk)
		return
	}
	if turn && tk.isShort(handleOf(n).medium()) {
		tk.turn = true
		tk.execute(nil)
		return
	}
	handleOf(n).workers.submit(tk)
}

// shortMost is the maximum number of octets of a short operation.
const shortMost = 32 << 10

// isShort reports whether a task is one read or write of few octets that does not wait for a medium. Calling the back end directly
// does not delay the queue: meanwhile it would only pass on later commands.
func (tk *task) isShort(b backend.Backend) bool {
	k := tk.op.Kind
	return (k == model.OpRead || k == model.OpWrite) && tk.op.Length <= shortMost && backend.Describe(b).Immediate
}

func handleOf(n *model.Namespace) *namespace { return n.Handle.(*namespace) }

// A scratch is memory of a worker.
type scratch struct{ compare []byte }

// compareSize is how much Compare reads at a time: a multiple of all LBA sizes.
const compareSize = 64 << 10

// execute calls back ends, and answers.
func (tk *task) execute(s *scratch) {
	if tk.ctrl != nil {
		tk.t.flushFor(tk.ctrl)
		return
	}
	if !tk.q.m.Begin(tk.ref) {
		tk.drop()
		return
	}
	tk.finish(tk.carryOut(s))
}

func (tk *task) carryOut(s *scratch) capsule.Status {
	op := &tk.op
	if op.Kind == model.OpFlush {
		return flush(tk.q.ctx, op.Namespaces)
	}
	return statusOf(handleOf(op.Namespace).use(func(b backend.Backend) error { return tk.call(b, s) }))
}

var errDiffers = errors.New("nvme: the data differs")

// call executes an operation on a single namespace.
func (tk *task) call(b backend.Backend, s *scratch) error {
	ctx, op := tk.q.ctx, &tk.op
	switch op.Kind {
	case model.OpRead:
		if op.FUA {
			if err := b.Flush(ctx); err != nil {
				return err
			}
		}
		return b.ReadAt(ctx, tk.buf.mem[:op.Length], int64(op.Offset))
	case model.OpCompare:
		return compare(ctx, b, op, s)
	default: // a flush concerns several namespaces
		return tk.change(b)
	}
}

// change executes an operation that changes a namespace. If the host has switched caches off, possibly meanwhile, its octets must not
// stay in a cache: the flush for switching off covers only operations that were completed before.
func (tk *task) change(b backend.Backend) (err error) {
	ctx, op, durable := tk.q.ctx, &tk.op, tk.op.FUA
	switch op.Kind {
	case model.OpWrite:
		err = b.WriteAt(ctx, op.Octets, int64(op.Offset), op.FUA)
	case model.OpWriteZeroes:
		err = b.WriteZeroes(ctx, int64(op.Offset), int64(op.Length), op.Unmap, op.FUA)
	default: // trims have no FUA
		durable, err = false, trim(ctx, b, op)
	}
	if err != nil || durable || !op.FUA && !tk.q.m.CacheOff() {
		return err
	}
	return b.Flush(ctx)
}

func trim(ctx context.Context, b backend.Backend, op *model.Op) error {
	for i := range op.Ranges {
		if off, n := op.Range(i); n > 0 {
			if err := b.Trim(ctx, int64(off), int64(n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare reads piece by piece.
func compare(ctx context.Context, b backend.Backend, op *model.Op, s *scratch) error {
	if s.compare == nil {
		s.compare = make([]byte, compareSize)
	}
	off := int64(op.Offset)
	for want := op.Octets; len(want) > 0; {
		have := s.compare[:min(len(want), compareSize)]
		if err := b.ReadAt(ctx, have, off); err != nil {
			return err
		}
		if !bytes.Equal(have, want[:len(have)]) {
			return errDiffers
		}
		off, want = off+int64(len(have)), want[len(have):]
	}
	return nil
}

// flushFor does DoFlush.
func (t *Target) flushFor(c *model.Controller) {
	for list, more := t.model.Flush(c); more; list, more = t.model.Flush(c) {
		t.model.Flushed(c, flush(t.ctx, list))
	}
}

// flush flushes all namespaces. A failure does not stop the others.
func flush(ctx context.Context, list []*model.Namespace) capsule.Status {
	s := capsule.Success
	for _, n := range list {
		if err := handleOf(n).flush(ctx); err != nil {
			s = statusOf(err)
		}
	}
	return s
}

// statuses maps the errors of back ends to statuses.
var statuses = []struct {
	err    error
	status capsule.Status
}{
	{errDiffers, capsule.StatusCompareFailure},
	{backend.ErrNoSpace, capsule.StatusCapacityExceeded},
	{backend.ErrReadOnly, capsule.StatusWriteProtected},
	{backend.ErrOutOfRange, capsule.StatusLBAOutOfRange},
	{backend.ErrFailed, capsule.StatusWriteFault.WithDNR()},
	{backend.ErrWrite, capsule.StatusWriteFault},
	{backend.ErrSync, capsule.StatusWriteFault},
	{backend.ErrRead, capsule.StatusReadError},
}

func statusOf(err error) capsule.Status {
	if err == nil {
		return capsule.Success
	}
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			return s.status
		}
	}
	return capsule.StatusInternalError
}
