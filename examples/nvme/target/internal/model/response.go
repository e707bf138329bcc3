package model

import "github.com/goiwarp/iwarp/examples/nvme/capsule"

// A result is the outcome of a command.
type result struct {
	value  uint64 // DW0 and DW1
	status capsule.Status
}

func failed(s capsule.Status) result { return result{status: s} }

func succeeded(value uint64) result { return result{value: value} }

// answer ends a command that has a slot.
func (q *Queue) answer(r Ref, res result, out []Action) []Action {
	sl := q.slots.get(r)
	cid, d := sl.cid, sl.data
	direction := sl.sqe.Direction()
	q.slots.release(r.Slot)
	out = q.reply(cid, &d, res, out)
	a := &out[len(out)-1]
	a.Ref = r
	if res.status.OK() && direction == capsule.ControllerToHost {
		a.Data = d
	}
	return out
}

// reply responds to a command. It invalidates the key of its data if the host requests that, whatever the status.
func (q *Queue) reply(cid uint16, d *capsule.Data, res result, out []Action) []Action {
	cqe := capsule.CQE{SQHD: q.nextHead(), SQID: q.qid, CID: cid, Status: res.status}
	cqe.SetValue(res.value)
	out = append(out, Action{Do: DoRespond, Queue: q})
	a := &out[len(out)-1]
	cqe.Put(a.Response.Octets[:])
	if d.Invalidate {
		a.Response.Invalidate, a.Response.STag = true, d.STag
	}
	return out
}

// nextHead returns SQHD for the next response. It is 0 until Connect has succeeded.
func (q *Queue) nextHead() uint16 {
	switch {
	case q.noFlow:
		return capsule.SQHDDisabled
	case q.ctrl == nil:
		return 0
	case q.sqhd == q.sqsize:
		q.sqhd = 0
	default:
		q.sqhd++
	}
	return q.sqhd
}

// Renew updates the SQHD of a response that a call for another queue, or for no queue, returned: responses that later calls
// for this queue returned may have been sent already.
func (q *Queue) Renew(r *Response) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if cqe, err := capsule.ParseCQE(r.Octets[:]); err == nil && !q.noFlow {
		cqe.SQHD = q.sqhd
		cqe.Put(r.Octets[:])
	}
}

// refuse refuses a command before Connect has succeeded. The second refusal closes the queue without a response.
func (q *Queue) refuse(cid uint16, d *capsule.Data, why *Refusal, out []Action) []Action {
	q.failures++
	if q.failures > 1 {
		return q.close(out)
	}
	res := failed(why.Err.Status)
	if why.Err.Status.Is(capsule.StatusConnectParameter) {
		res.value = uint64(why.Err.Parameter.DW0())
	}
	out = q.reply(cid, d, res, out)
	out[len(out)-1].Refusal = why
	return out
}

// later makes an action for a command that does not end yet, and puts it in the given stage. It closes the queue if
// there are more commands than receives.
func (q *Queue) later(do Do, to stage, c *capsule.SQE, d *capsule.Data, out []Action) []Action {
	i := q.slots.take(c, d)
	if i == none {
		return q.close(out)
	}
	q.slots.enter(i, to)
	return append(out, Action{Do: do, Queue: q, Ref: q.slots.ref(i), Data: *d})
}
