package model

import (
	"fmt"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// An Arrival describes a connection that a host wants to set up.
type Arrival struct {
	Private []byte // private data of the MPA Request, without the IRD and ORD of RFC 6581
	IRD     int    // RDMA Reads that the host answers at a time; negative: unknown
	Local   Address
	Remote  string // address of the host, without a port: what Limits.PerAddress counts
	// Authorize reports whether the host may use its name, and the subsystem; nil: it may.
	Authorize func(*capsule.ConnectData) bool
}

// An Address is an address of a target, as in the discovery log.
type Address struct {
	Family  uint8  // capsule.AddressIPv4 or capsule.AddressIPv6
	Addr    string // TRADDR: an IP address in its usual form, an IPv4 address as such, without a zone
	Service string // TRSVCID: the port
}

// check returns what is wrong with an address.
func (a *Address) check() error {
	if a.Family != capsule.AddressIPv4 && a.Family != capsule.AddressIPv6 || a.Addr == "" || a.Service == "" {
		return fmt.Errorf("nvme: %+v is no address", *a)
	}
	return nil
}

// Open checks a connection and makes its queue, or returns why the connection is rejected (RDMA transport 1.0,
// 3.3): then nothing has changed. The engine must call Lost for a queue that Open returned, even if the connection
// is not established.
func (t *Target) Open(now time.Duration, a Arrival) (*Queue, capsule.RejectStatus) {
	req, reject := capsule.ParseRequest(a.Private)
	if reject != 0 {
		return nil, reject
	}
	l := &t.cfg.Limits
	if s := req.Check(uint16(l.IOQueues), uint16(l.AdminEntries-1), uint16(l.QueueEntries-1)); s != 0 {
		return nil, s
	}
	if a.IRD == 0 {
		return nil, capsule.RejectIRD
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case req.QID > 0 && req.CNTLID != 0 && !t.hasController(req.CNTLID):
		return nil, capsule.RejectCNTLID
	case t.stopping || t.connections >= l.Connections || t.perAddress[a.Remote] >= l.PerAddress:
		return nil, capsule.RejectNoResources
	}
	q := t.newQueue(&req, &a)
	q.deadline = now + t.cfg.ConnectTimeout
	t.connections++
	t.perAddress[a.Remote]++
	t.waiting = append(t.waiting, q)
	return q, 0
}

// hasController reports whether any subsystem has a controller with an id.
func (t *Target) hasController(id uint16) bool {
	return slices.ContainsFunc(t.subsystems, func(s *subsystem) bool { return s.controller(id) != nil })
}

func (t *Target) newQueue(req *capsule.Request, a *Arrival) *Queue {
	q := &Queue{
		t:      t,
		qid:    req.QID,
		depth:  int(req.HSQSize) + 1,
		ord:    t.cfg.UnknownORD,
		local:  a.Local,
		remote: a.Remote,
		allow:  a.Authorize,
		slots:  newSlots(int(req.HSQSize) + 1),
	}
	if a.IRD > 0 {
		q.ord = min(t.cfg.ORD, a.IRD)
	}
	return q
}

// Lost reports that the connection of a queue has ended, for any reason. It cancels the queue's commands, except those
// that a back end has begun. The end of an admin queue ends its controller. A second call does
// nothing.
func (t *Target) Lost(q *Queue, out []Action) []Action {
	t.mu.Lock()
	defer t.mu.Unlock()
	q.mu.Lock()
	again := q.lost
	q.lost, q.closed = true, true
	q.slots.cancel()
	c := q.ctrl
	q.mu.Unlock()
	if again {
		return out
	}
	t.noWaiting(q)
	t.connections--
	if t.perAddress[q.remote]--; t.perAddress[q.remote] == 0 {
		delete(t.perAddress, q.remote)
	}
	switch {
	case c == nil:
		return out
	case q.qid == 0:
		return t.end(c, out)
	}
	if c.queues[q.qid] == q {
		c.queues[q.qid] = nil
	}
	return t.drained(q, out)
}

func (t *Target) noWaiting(q *Queue) {
	t.waiting = slices.DeleteFunc(t.waiting, func(o *Queue) bool { return o == q })
}

// close closes a queue.
func (t *Target) close(q *Queue, out []Action) []Action {
	t.noWaiting(q)
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.close(out)
}

// drained checks whether an I/O queue has ended and no back end works for it any more.
func (t *Target) drained(q *Queue, out []Action) []Action {
	q.mu.Lock()
	over := q.lost && q.slots.running == 0 && !q.gone
	q.gone = q.gone || over
	c := q.ctrl
	q.mu.Unlock()
	if !over || c == nil || q.qid == 0 {
		return out
	}
	c.io--
	return c.resetDone(out)
}
