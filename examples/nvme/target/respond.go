package target

import (
	"encoding/binary"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/target/internal/model"
	"github.com/goiwarp/iwarp/stag"
)

// actions holds what the model returned, and the resulting tasks. It is reused.
type actions struct {
	list  []model.Action
	tasks []*task // to begin
	turn  bool    // they belong to the turn of the queue: its outbox need not be posted at once
	next  *actions
}

// actionLists holds the actions that are not in use.
type actionLists struct {
	mu   sync.Mutex
	free *actions
}

func (l *actionLists) get() *actions {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.free
	if a == nil {
		return new(actions)
	}
	l.free = a.next
	return a
}

func (l *actionLists) put(a *actions) {
	clear(a.list)
	clear(a.tasks)
	a.list, a.tasks, a.turn = a.list[:0], a.tasks[:0], false
	l.mu.Lock()
	defer l.mu.Unlock()
	a.next, l.free = l.free, a
}

// current is the command for which the model was called. It has either a task or a receive.
type current struct {
	task    *task
	receive int
	cid     uint16
}

func (tk *task) current() current { return current{task: tk, receive: none, cid: tk.cid} }

// own performs the actions of the model for the queue that cannot wait until mu is released: responses, in order, and the
// tasks of commands that were not answered. mu must be held.
func (q *queue) own(acts *actions, cur *current) {
	for i := range acts.list {
		a := &acts.list[i]
		if a.Queue != q.m {
			continue
		}
		switch a.Do {
		case model.DoRespond:
			q.respond(a, cur)
		case model.DoFetch, model.DoFill, model.DoExecute:
			tk := cur.task
			if tk == nil {
				tk = q.bind(a, *cur)
				cur.task, cur.receive = tk, none
			}
			tk.do, tk.op, tk.data = a.Do, a.Op, a.Data
			acts.tasks = append(acts.tasks, tk)
		default: // perform does it
		}
	}
	if cur.receive != none { // an Asynchronous Event Request, or the queue is closed
		q.kept = append(q.kept, cur.receive)
	}
}

// perform performs the remaining actions: q is the queue for which own was called, or nil. No lock may be held.
func (t *Target) perform(q *queue, acts *actions) {
	for i := range acts.list {
		t.performOne(q, &acts.list[i])
	}
	for _, tk := range acts.tasks {
		tk.begin(acts.turn)
	}
	if q != nil && !acts.turn {
		q.flush()
	}
	t.actions.put(acts)
}

func (t *Target) performOne(q *queue, a *model.Action) {
	to := q
	if q == nil || a.Queue != q.m {
		to = t.queueOf(a.Queue)
	}
	switch {
	case a.Do == model.DoFlush: // also if its queue has ended
		t.flusher(a.Controller).submit(&task{t: t, ctrl: a.Controller})
	case to == nil:
	case a.Do == model.DoRespond:
		if to != q {
			to.respondTo(a)
		}
		if a.Refusal != nil {
			t.stats.refused.Add(1)
			t.lines.info("Connect refused", "peer", to.remote, "qid", to.m.QID(), "why", a.Refusal.String())
		}
		if a.Last {
			to.close() // after the contents of the outbox
		}
	case a.Do == model.DoClose:
		to.abort()
	}
}

// respondTo posts a response that a call for another queue has returned.
func (q *queue) respondTo(a *model.Action) {
	acts := q.t.actions.get()
	q.mu.Lock()
	q.m.Renew(&a.Response)
	q.respond(a, &current{receive: none})
	q.mu.Unlock()
	q.t.perform(q, acts)
}

func cidOf(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }

// cidAt is the offset of the CID in a CQE.
const cidAt = 12

// respond adds the receive of a command to the outbox again, and the response after its data. A closed target answers
// nothing: an error because of its end would be final to a host. mu must be held.
func (q *queue) respond(a *model.Action, cur *current) {
	if q.stage == ended || q.t.is(closed) {
		return
	}
	receive, buf := q.answered(a, cur)
	if receive != none {
		q.out.receive(q.recvs, receive)
	}
	q.response(a, buf)
}

// answered returns the receive of the command that a response is for, and the buffer with its data. A response without a Ref
// is for the current command. mu must be held.
func (q *queue) answered(a *model.Action, cur *current) (receive int, data *buffer) {
	mine := cidOf(a.Response.Octets[cidAt:]) == cur.cid
	if mine && cur.receive != none {
		receive, cur.receive = cur.receive, none
		return receive, nil
	}
	tk := q.slots[a.Ref.Slot]
	if mine && cur.task != nil {
		tk = cur.task
		if a.Data.Kind == capsule.DataKeyed {
			data, tk.buf = tk.buf, nil
		}
	}
	if tk != nil && (tk == cur.task || tk.ref == a.Ref) {
		receive, tk.receive = tk.receive, none
		q.unbind(tk)
		return receive, data
	}
	if n := len(q.kept) - 1; n >= 0 { // an Asynchronous Event Request
		receive, q.kept = q.kept[n], q.kept[:n]
		return receive, nil
	}
	return none, nil
}

// response makes the work requests of a response. mu must be held.
func (q *queue) response(a *model.Action, data *buffer) {
	o := &q.out
	var id uint64 // of the buffer, if there is one
	flags := iwarp.Unsignaled
	if data != nil {
		n := int(a.Data.Length)
		q.t.stats.sent.Add(uint64(n))
		o.octets += n
		write := o.send()
		write.Op, write.Flags, write.Remote, write.Local = iwarp.OpRDMAWrite, iwarp.Unsignaled, remote(&a.Data), o.part(data, n)
		id, flags = uint64(data.id)+1, 0
	}
	send := o.send()
	send.ID, send.Op, send.Flags, send.Inline = id, iwarp.OpSend, flags, o.cqe(&a.Response.Octets)
	if a.Response.Invalidate {
		send.Op, send.Invalidate = iwarp.OpSendInvalidate, stag.STag(a.Response.STag)
	}
}

// remote returns the memory of the host that a command names. It does not change the address: Linux sets bit 63.
func remote(d *capsule.Data) iwarp.RemoteBuffer {
	return iwarp.RemoteBuffer{STag: stag.STag(d.STag), TO: d.TO, Len: d.Length}
}
