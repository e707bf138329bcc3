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
	allow    func(*capsule.ConnectData) bool // nil: every host
	deadline time.Duration                   // for Connect
	gone     bool                            // see drained

	// io reports that the queue is a connected I/O queue. All others are used under the lock of the target, too.
	io atomic.Bool

	mu       sync.Mutex
	ctrl     *Controller // nil before Connect; then always the same
	sqsize   uint16      // entries, less 1
	sqhd     uint16
	noFlow   bool // SQ flow control is disabled
	failures int  // before Connect
	closed   bool // no action for it follows
	lost     bool // the connection has ended
	orphans  int  // aborted commands whose holders do not know it yet from Begin or Finish: the depth at most
	slots    slots
}

// QID returns the number of the queue: 0 is an admin queue.
func (q *Queue) QID() uint16 { return q.qid }

// Depth returns how many receives the engine posts before the Reply, which is also the maximum number of outstanding commands.
func (q *Queue) Depth() int { return q.depth }

// ORD returns how many RDMA Reads may be outstanding at a time: at least 1. The Reply contains it.
func (q *Queue) ORD() int { return q.ord }

// ReceiveSize returns the length of each receive buffer, in octets.
func (q *Queue) ReceiveSize() int { return q.t.cfg.ReceiveSize(q.qid) }

// Accept returns the private data of the Reply.
func (q *Queue) Accept() capsule.Accept { return capsule.Accept{CRQSize: uint16(q.depth)} }

// Controller returns the controller of the queue: nil before Connect has succeeded, and then always the same.
func (q *Queue) Controller() *Controller {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ctrl
}

// lock takes the locks that commands of the queue need, and reports whether the target's lock is among them.
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

// Command handles a message that has arrived on the queue. The actions refer to parts of msg, which stay in use until the
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

// orphaned reports whether the controller of the queue has ended, so that the queue is about to be closed. A command that
// arrives between the two gets no response, as if it had arrived later: the host sends it again on another connection,
// whereas it would take a status for the result.
func (q *Queue) orphaned() bool { return q.ctrl != nil && q.ctrl.state() == ended }

// inCapsule returns the part of the octets after a command that the queue accepts.
func (q *Queue) inCapsule(behind []byte) []byte {
	most := capsule.ConnectDataSize
	if q.io.Load() {
		most = q.t.cfg.InCapsule
	}
	return behind[:min(len(behind), most)]
}

// Begin must be called just before an RDMA Read of a command is posted, and just before a back end begins the
// command. If it returns false, the command has ended, and neither may happen.
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

// forget stops counting an aborted command whose holder now knows it. mu must be held.
func (q *Queue) forget() { q.orphans = max(q.orphans-1, 0) }

// Fetched takes the data of a command: all octets that DoFetch requested. They stay in use until the command has
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

// Fill writes the data that the host requested to buf, which must have as many octets as DoFill said; it writes all
// of them. The returned action, if any, sends them to the host.
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

// Finish ends a command with the status of the back end, or with another one if the engine cannot continue the
// command. It does nothing for a command that has ended.
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

// finish performs Finish. over reports whether the queue may be drained.
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

// close closes the queue. Nothing is answered any more; commands that no back end works on are cancelled.
func (q *Queue) close(out []Action) []Action {
	if q.closed {
		return out
	}
	q.closed = true
	q.slots.cancel()
	return append(out, Action{Do: DoClose, Queue: q})
}
