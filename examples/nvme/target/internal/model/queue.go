package model

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// A Queue is one connection: a submission queue and its completion queue.
type Queue struct {
	t        *Target
	qid      uint16
	depth    int
	ord      int
	local    Address
	remote   string
	allow    func(*capsule.ConnectData) bool // nil: each
	deadline time.Duration                   // for Connect
	gone     bool                            // see drained

	// io tells that the queue is a connected I/O queue. All others are used under the lock of the target too.
	io atomic.Bool

	mu       sync.Mutex
	ctrl     *Controller // nil before Connect; then always the same
	sqsize   uint16      // entries, less 1
	sqhd     uint16
	noFlow   bool // SQ flow control is disabled
	failures int  // before Connect
	closed   bool // no action for it follows
	lost     bool // the connection has ended
	orphans  int  // aborted commands whose holders have not found out, by Begin or Finish: the depth at most
	slots    slots
}

// QID is the number of the queue: 0 is an admin queue.
func (q *Queue) QID() uint16 { return q.qid }

// Depth is how many receives the engine posts before the Reply, and how many commands are outstanding at most.
func (q *Queue) Depth() int { return q.depth }

// ORD is how many RDMA Reads may be outstanding at a time: at least 1. The Reply contains it.
func (q *Queue) ORD() int { return q.ord }

// ReceiveSize is the length of each receive buffer, in octets.
func (q *Queue) ReceiveSize() int { return q.t.cfg.ReceiveSize(q.qid) }

// Accept is the private data of the Reply.
func (q *Queue) Accept() capsule.Accept { return capsule.Accept{CRQSize: uint16(q.depth)} }

// Controller is the controller of the queue: nil before Connect has succeeded, and then always the same.
func (q *Queue) Controller() *Controller {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ctrl
}

// lock takes the locks that commands of the queue need, and tells whether that of the target is among them.
func (q *Queue) lock() (all bool) {
	if !q.io.Load() {
		q.t.mu.Lock()
		all = true
	}
	q.mu.Lock()
	return all
}

func (q *Queue) unlock(all bool) {
	q.mu.Unlock()
	if all {
		q.t.mu.Unlock()
	}
}

// Command takes a message that has come on the queue. Parts of msg are in the actions, and remain in use until the
// command has ended.
func (q *Queue) Command(now time.Duration, msg []byte, out []Action) []Action {
	all := q.lock()
	defer q.unlock(all)
	if q.closed || q.orphaned() {
		return out
	}
	c, behind, err := capsule.ParseSQE(msg)
	if err != nil {
		return q.close(out)
	}
	if q.ctrl != nil {
		q.ctrl.heard.Store(int64(now))
	}
	d, status := c.Data(q.inCapsule(behind))
	switch {
	case q.slots.find(c.CID) != none:
		return q.reply(c.CID, &d, failed(capsule.StatusCIDConflict), out)
	case q.ctrl == nil && !c.IsConnect():
		return q.refuse(c.CID, &d, &Refusal{Err: capsule.ConnectError{Status: capsule.StatusSequenceError}}, out)
	case !status.OK() && q.ctrl == nil:
		return q.refuse(c.CID, &d, &Refusal{Err: capsule.ConnectError{Status: status}}, out)
	case !status.OK():
		return q.reply(c.CID, &d, failed(status), out)
	case c.Opcode == capsule.OpFabrics:
		return q.fabrics(now, &c, &d, out)
	case q.qid == 0:
		return q.admin(c, d, out)
	}
	return q.ioCommand(&c, &d, out)
}

// orphaned tells that the controller of the queue has ended, so that the queue is about to be closed. A command that comes
// between the two gets no response, as if it had come later: the host sends it again on another connection, while it would
// take a status for the result.
func (q *Queue) orphaned() bool { return q.ctrl != nil && q.ctrl.state() == ended }

// inCapsule is what the queue takes of the octets behind a command.
func (q *Queue) inCapsule(behind []byte) []byte {
	most := capsule.ConnectDataSize
	if q.io.Load() {
		most = q.t.cfg.InCapsule
	}
	return behind[:min(len(behind), most)]
}

// Begin is called just before an RDMA Read of a command is posted, and just before a back end begins with it. If
// it returns false, the command has ended, and neither may happen.
func (q *Queue) Begin(r Ref) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	sl := q.slots.get(r)
	if sl == nil {
		q.forget()
		return false
	}
	switch sl.stage {
	case toFetch:
		q.slots.enter(r.Slot, fetching)
	case queued:
		q.slots.enter(r.Slot, running)
	default:
		return false
	}
	return true
}

// forget counts off an aborted command whose holder has found out. mu is held.
func (q *Queue) forget() { q.orphans = max(q.orphans-1, 0) }

// Fetched takes the data of a command: all octets that DoFetch asked for. They remain in use until the command has
// ended.
func (q *Queue) Fetched(now time.Duration, r Ref, octets []byte, out []Action) []Action {
	all := q.lock()
	defer q.unlock(all)
	sl := q.slots.get(r)
	switch {
	case sl == nil || sl.stage != fetching:
		return out
	case sl.aborted:
		return q.answer(r, failed(capsule.StatusAbortRequested), out)
	case sl.sqe.IsConnect():
		return q.connectFetched(now, r, octets, out)
	}
	return q.ioFetched(r, octets, out)
}

// Fill fills in what the host asked for: buf has as many octets as DoFill said, all of which are written.
// They go to the host with the action that is returned, if any.
func (q *Queue) Fill(r Ref, buf []byte, out []Action) []Action {
	all := q.lock()
	defer q.unlock(all)
	sl := q.slots.get(r)
	if sl == nil || sl.stage != toFill {
		return out
	}
	buf = buf[:sl.data.Length]
	clear(buf)
	res := q.ctrl.fill(&sl.sqe, buf)
	out = q.answer(r, res, out)
	return q.ctrl.deliver(out)
}

// Finish ends a command: with the status of the back end, or with another one if the engine cannot go on with it.
// It does nothing for a command that has ended.
func (q *Queue) Finish(r Ref, status capsule.Status, out []Action) []Action {
	all := q.lock()
	out, over := q.finish(r, status, out)
	q.unlock(all)
	if over {
		q.t.mu.Lock()
		out = q.t.drained(q, out)
		q.t.mu.Unlock()
	}
	return out
}

// finish is Finish. over tells that the queue may be drained.
func (q *Queue) finish(r Ref, status capsule.Status, out []Action) (_ []Action, over bool) {
	sl := q.slots.get(r)
	switch {
	case sl == nil:
		q.forget()
		return out, false
	case sl.stage == parked:
		return out, false
	case q.closed:
		q.slots.release(r.Slot)
		return out, q.lost
	case sl.aborted:
		status = capsule.StatusAbortRequested
	}
	if q.ctrl == nil {
		cid, d := sl.cid, sl.data
		q.slots.release(r.Slot)
		return q.refuse(cid, &d, &Refusal{Err: capsule.ConnectError{Status: status}}, out), false
	}
	if q.qid != 0 && status.OK() {
		q.ctrl.sub.counters.count(sl.op, sl.octets)
	}
	return q.answer(r, failed(status), out), false
}

// close closes the queue. Nothing is answered any more; what no back end works on is cancelled.
func (q *Queue) close(out []Action) []Action {
	if q.closed {
		return out
	}
	q.closed = true
	q.slots.cancel()
	return append(out, Action{Do: DoClose, Queue: q})
}
