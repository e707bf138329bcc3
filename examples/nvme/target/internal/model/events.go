package model

import (
	"slices"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// aerl is how many Asynchronous Event Requests a controller holds, less 1.
const aerl = 3

// A notice is an event that a controller may have to report (Base 2.0, 5.2).
type notice struct {
	pending bool
	masked  bool // reported, and its log was not read yet
}

// events holds the Asynchronous Event Requests of a controller, and the events to report.
type events struct {
	admin      *Queue
	enabled    uint32 // feature
	requests   []Ref  // parked, the oldest first
	namespaces notice
	discovery  notice
	changed    []uint32 // namespaces, ascending; one more than a log has is the most
}

// park parks an Asynchronous Event Request. The lock of the admin queue is held.
func (e *events) park(c *capsule.SQE, d *capsule.Data, out []Action) []Action {
	if len(e.requests) > aerl {
		return e.admin.reply(c.CID, d, failed(capsule.StatusAsyncEventLimit), out)
	}
	i := e.admin.slots.take(c, d)
	if i == none {
		return e.admin.close(out)
	}
	e.admin.slots.enter(i, parked)
	e.requests = append(e.requests, e.admin.slots.ref(i))
	return e.deliver(out)
}

// deliver reports what is pending. The lock of the admin queue is held.
func (e *events) deliver(out []Action) []Action {
	out = e.report(&e.namespaces, capsule.NoticeNamespaces, capsule.EventNamespaceChanged, out)
	return e.report(&e.discovery, capsule.NoticeDiscovery, capsule.EventDiscoveryChanged, out)
}

func (e *events) report(n *notice, bit uint32, event capsule.AsyncEvent, out []Action) []Action {
	if !n.pending || n.masked || e.enabled&bit == 0 || len(e.requests) == 0 || e.admin.closed {
		return out
	}
	n.pending, n.masked = false, true
	r := e.requests[0]
	e.requests = slices.Delete(e.requests, 0, 1)
	return e.admin.answer(r, succeeded(uint64(event.DW0())), out)
}

// abort ends the request with a CID. The lock of the admin queue is held.
func (e *events) abort(r Ref, out []Action) []Action {
	e.requests = slices.DeleteFunc(e.requests, func(o Ref) bool { return o == r })
	return e.admin.answer(r, failed(capsule.StatusAbortRequested), out)
}

// reset ends all requests, and forgets what there was to report. The lock of the admin queue is held.
func (e *events) reset(out []Action) []Action {
	for len(e.requests) > 0 {
		out = e.abort(e.requests[0], out)
	}
	*e = events{admin: e.admin}
	return out
}

// namespaceChanged tells the controllers of a subsystem that a namespace has changed.
func (t *Target) namespaceChanged(s *subsystem, nsid uint32, out []Action) []Action {
	for _, c := range s.controllers {
		c.changed = withID(c.changed, nsid)
		c.namespaces.pending = true
		out = c.deliverLocked(out)
	}
	return out
}

// withID adds an id to an ascending list, which needs at most one id more than a log holds.
func withID(ids []uint32, id uint32) []uint32 {
	at, found := slices.BinarySearch(ids, id)
	if found || len(ids) > capsule.MaxNamespaces {
		return ids
	}
	return slices.Insert(ids, at, id)
}

// discoveryChanged tells the discovery controllers that the log has changed.
func (t *Target) discoveryChanged(out []Action) []Action {
	t.genctr++
	for _, c := range t.subsystems[0].controllers {
		c.discovery.pending = true
		out = c.deliverLocked(out)
	}
	return out
}

func (c *Controller) deliverLocked(out []Action) []Action {
	c.admin.mu.Lock()
	defer c.admin.mu.Unlock()
	return c.deliver(out)
}
