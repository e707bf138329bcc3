package target

import (
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/target/internal/model"
)

// A task is a command that was not answered at once. It always has exactly one holder: the budget while it waits for a buffer,
// the FIFO of its queue while it waits for an RDMA Read, the buffer of that Read, or a worker. When a command is aborted, it
// is answered, but its task stays where it is; its holder learns this from the model, and drops the task.
type task struct {
	t        *Target // of DoFlush
	q        *queue
	ref      model.Ref
	cid      uint16
	receive  int // of the command; none: it was answered
	do       model.Do
	data     capsule.Data
	op       model.Op
	buf      *buffer
	ctrl     *model.Controller // of DoFlush, which is not a command: only t is set as well
	turn     bool              // it is executed in the turn of the queue
	most     int64             // octets of the budget that its queue may have, including its buffer
	deadline time.Duration     // while it waits for a buffer
	next     *task             // of a taskList
}

// none is no receive.
const none = -1

// A taskList is a queue of tasks. A task is in at most one list.
type taskList struct{ first, last *task }

func (l *taskList) empty() bool { return l.first == nil }

func (l *taskList) push(tk *task) {
	tk.next = nil
	if l.first == nil {
		l.first = tk
	} else {
		l.last.next = tk
	}
	l.last = tk
}

// pop removes and returns the oldest task, nil if there is none.
func (l *taskList) pop() *task {
	tk := l.first
	if tk != nil {
		l.first, tk.next = tk.next, nil
	}
	return tk
}

// bind makes the task of a command that has arrived in a receive. mu must be held.
func (q *queue) bind(a *model.Action, cur current) *task {
	tk := q.spare
	if tk == nil {
		tk = new(task)
	} else {
		q.spare = tk.next
	}
	*tk = task{q: q, ref: a.Ref, cid: cur.cid, receive: cur.receive}
	if old := q.slots[a.Ref.Slot]; old != nil { // it was aborted, and the response to it is not in the outbox yet
		q.unbind(old)
	}
	q.slots[a.Ref.Slot] = tk
	q.tasks.Add(1)
	q.t.tasks.Add(1)
	return tk
}

// drop ends a task and frees its buffer. The response that the host waits for must have been sent.
func (tk *task) drop() {
	q := tk.q
	if tk.buf != nil {
		q.giveBack(tk.buf)
	}
	q.mu.Lock()
	if q.slots[tk.ref.Slot] == tk {
		q.unbind(tk)
	}
	*tk = task{next: q.spare}
	q.spare = tk
	q.mu.Unlock()
	q.t.taskEnded()
	q.tasks.Done()
}

// unbind takes the receive from a task. A task that was not answered keeps it until the queue ends. mu must be held.
func (q *queue) unbind(tk *task) {
	q.slots[tk.ref.Slot] = nil
	if tk.receive != none {
		q.kept = append(q.kept, tk.receive)
		tk.receive = none
	}
}

func (t *Target) taskEnded() {
	if t.tasks.Add(-1) == 0 && t.is(draining) {
		t.drained()
	}
}

// begin starts the action of the model, with a buffer if data must be moved and have none yet. turn is as in actions.
func (tk *task) begin(turn bool) {
	if n := tk.needs(); n > 0 && tk.buf == nil && !tk.q.t.budget.take(tk, n) {
		return // the budget continues it later
	}
	tk.proceed(turn)
}

// needs returns how many octets of buffer the task needs.
func (tk *task) needs() int {
	if tk.do == model.DoExecute && tk.op.Kind != model.OpRead {
		return 0
	}
	return int(tk.data.Length)
}

// proceed continues a task whose memory is accounted for.
func (tk *task) proceed(turn bool) {
	q := tk.q
	if n := tk.needs(); n > 0 && tk.buf == nil {
		if tk.buf = q.buffer(n); tk.buf == nil {
			q.t.budget.release(q, sizeOf(n))
			tk.finish(capsule.StatusBusy)
			return
		}
	}
	switch tk.do {
	case model.DoFetch:
		q.fetch(tk, turn)
	case model.DoFill:
		tk.fill()
	default:
		tk.submit(turn)
	}
}
