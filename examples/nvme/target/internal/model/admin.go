package model

import "github.com/goiwarp/iwarp/examples/nvme/capsule"

// abortLimit is how many Aborts can be outstanding, less 1. Each one is done before the next one is handled, so that
// there is never more than one.
const abortLimit = 3

// An adminCommand says how to execute a command of the admin queue.
type adminCommand struct {
	discovery bool // discovery controllers support it too
	early     func(*capsule.SQE) bool
	do        func(q *Queue, c *capsule.SQE, d *capsule.Data, out []Action) []Action
}

// adminCommands are the commands of the admin queue (Base 2.0, 5), except for Fabrics commands.
var adminCommands = map[capsule.Opcode]*adminCommand{
	capsule.OpGetLogPage:  {discovery: true, do: (*Queue).getLogPage},
	capsule.OpIdentify:    {discovery: true, do: (*Queue).identify, early: identifiesController},
	capsule.OpAbort:       {do: (*Queue).abort},
	capsule.OpSetFeatures: {discovery: true, do: (*Queue).setFeatures},
	capsule.OpGetFeatures: {discovery: true, do: (*Queue).getFeatures},
	capsule.OpAsyncEvent:  {discovery: true, do: (*Queue).asyncEvent},
	capsule.OpKeepAlive:   {discovery: true, do: (*Queue).keepAlive, early: func(*capsule.SQE) bool { return true }},
}

func identifiesController(c *capsule.SQE) bool {
	return capsule.ParseIdentify(c).CNS == capsule.CNSController
}

// admin executes a command of the admin queue. Before the controller is ready and after its shutdown, it executes
// only a few. The parameters are copies, so that only commands of the admin queue allocate them.
func (q *Queue) admin(c capsule.SQE, d capsule.Data, out []Action) []Action {
	a := adminCommands[c.Opcode]
	switch {
	case q.ctrl.state() != ready && (a == nil || a.early == nil || !a.early(&c)):
		return q.reply(c.CID, &d, failed(capsule.StatusSequenceError), out)
	case a == nil || q.ctrl.sub.discovery && !a.discovery:
		return q.reply(c.CID, &d, failed(capsule.StatusInvalidOpcode), out)
	}
	return a.do(q, &c, &d, out)
}

func (q *Queue) keepAlive(c *capsule.SQE, d *capsule.Data, out []Action) []Action {
	return q.reply(c.CID, d, succeeded(0), out)
}

func (q *Queue) asyncEvent(c *capsule.SQE, d *capsule.Data, out []Action) []Action {
	return q.ctrl.park(c, d, out)
}

func (q *Queue) identify(c *capsule.SQE, d *capsule.Data, out []Action) []Action {
	if s := d.Exactly(capsule.PageSize); !s.OK() {
		return q.reply(c.CID, d, failed(s), out)
	}
	if q.ctrl.sub.discovery && !identifiesController(c) {
		return q.reply(c.CID, d, failed(capsule.StatusInvalidOpcode), out)
	}
	return q.later(DoFill, toFill, c, d, out)
}

// abort ends another command, if no back end has begun it (Base 2.0, 5.1). A command whose data is being fetched is
// answered when the data has arrived, since its key must not be invalidated before.
func (q *Queue) abort(c *capsule.SQE, d *capsule.Data, out []Action) []Action {
	m := capsule.ParseAbort(c)
	done := false
	out, done = q.ctrl.abort(m, out)
	value := uint64(0)
	if !done {
		value = capsule.AbortFailed
	}
	return q.reply(c.CID, d, succeeded(value), out)
}

func (c *Controller) abort(m capsule.Abort, out []Action) ([]Action, bool) {
	if int(m.SQID) >= len(c.queues) || c.queues[m.SQID] == nil {
		return out, false
	}
	q := c.queues[m.SQID]
	if m.SQID != 0 {
		q.mu.Lock()
		defer q.mu.Unlock()
	}
	i := q.slots.find(m.CID)
	if i == none || q.closed {
		return out, false
	}
	r := q.slots.ref(i)
	switch q.slots.all[i].stage {
	case toFetch, queued:
		if q.orphans == q.depth { // a host cannot make more and more of them
			return out, false
		}
		q.orphans++
		return q.answer(r, failed(capsule.StatusAbortRequested), out), true
	case fetching:
		q.slots.all[i].aborted = true
		return out, true
	case parked:
		return c.events.abort(r, out), true
	default:
		return out, false
	}
}

// fill writes the data that the host requested to buf, which is zero.
func (c *Controller) fill(sqe *capsule.SQE, buf []byte) result {
	switch sqe.Opcode {
	case capsule.OpIdentify:
		return failed(c.fillIdentify(capsule.ParseIdentify(sqe), buf))
	case capsule.OpGetLogPage:
		return failed(c.fillLog(capsule.ParseGetLogPage(sqe), buf))
	default: // Get Features of FeatureHostID
		copy(buf, c.hostID[:])
		return succeeded(0)
	}
}
