package model

import (
	"slices"
	"sync/atomic"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// A state is a state of a controller (Base 2.0, 3.1.3.5; 3.6).
type state uint32

// The states of a controller. The host moves it with CC.
const (
	disabled  state = iota
	ready           // RDY
	failing         // CFS: it was enabled with fields that are not supported
	resetting       // still RDY: EN is 0, but I/O queues have not ended yet
	shutting        // SHST 1: the namespaces are to be flushed
	flushing        // SHST 1: they are being flushed
	unflushed       // SHST 1 and CFS: they could not be
	shut            // SHST 2
	ended           // the controller no longer exists
)

// A Controller represents a host's use of a subsystem, from Connect on the admin queue on.
type Controller struct {
	sub     *subsystem
	t       *Target
	id      uint16
	hostNQN string
	hostID  [16]byte

	// The I/O path reads these, and sets heard.
	current  atomic.Uint32 // a state
	heard    atomic.Int64  // when the last command came
	cacheOff atomic.Bool   // each write is durable: feature VWC is off, or the host was told that there is no cache

	// The rest is used under the lock of the target.
	queues  []*Queue // by QID; the first one is the admin queue
	io      int      // I/O queues, including ended ones on which a back end still works
	cc      capsule.CC
	failed  bool   // CFS, since the keep alive timer has expired
	granted int    // I/O queues
	katoMS  uint32 // keep alive timeout in milliseconds, rounded up; 0: none
	events
	log discoveryLog
}

// HostNQN returns the name that the host has given.
func (c *Controller) HostNQN() string { return c.hostNQN }

// SubNQN returns the name of the subsystem.
func (c *Controller) SubNQN() string { return c.sub.nqn }

func (c *Controller) state() state { return state(c.current.Load()) }

func (c *Controller) enter(s state) { c.current.Store(uint32(s)) }

// newController makes a controller after all checks have passed.
func (t *Target) newController(s *subsystem, data *capsule.ConnectData, m *capsule.Connect, admin *Queue) *Controller {
	c := &Controller{
		sub:     s,
		t:       t,
		id:      s.nextID(),
		hostNQN: data.HostNQN,
		hostID:  data.HostID,
		queues:  make([]*Queue, t.cfg.Limits.IOQueues+1),
		granted: t.cfg.Limits.IOQueues,
		katoMS:  roundKATO(m.KATO),
	}
	c.admin = admin
	at, _ := slices.BinarySearchFunc(s.controllers, c.id, func(o *Controller, id uint16) int { return int(o.id) - int(id) })
	s.controllers = slices.Insert(s.controllers, at, c)
	t.controllers++
	t.perHost[c.hostNQN]++
	return c
}

// end ends a controller: its id is free, and all its queues are closed.
func (t *Target) end(c *Controller, out []Action) []Action {
	if c.state() == ended {
		return out
	}
	c.enter(ended)
	c.sub.controllers = slices.DeleteFunc(c.sub.controllers, func(o *Controller) bool { return o == c })
	t.controllers--
	if t.perHost[c.hostNQN]--; t.perHost[c.hostNQN] == 0 {
		delete(t.perHost, c.hostNQN)
	}
	for _, q := range c.queues {
		if q != nil {
			out = t.close(q, out)
		}
	}
	return out
}

// csts returns the property CSTS. Like the kernel's, a controller that is shut down is not ready.
func (c *Controller) csts() capsule.CSTS {
	s := capsule.CSTS{CFS: c.failed}
	switch c.state() {
	case ready, resetting:
		s.RDY = true
	case failing:
		s.CFS = true
	case shutting, flushing:
		s.RDY, s.SHST = true, capsule.SHSTOccurring
	case unflushed:
		s.RDY, s.CFS, s.SHST = true, true, capsule.SHSTOccurring
	case shut:
		s.SHST = capsule.SHSTComplete
	case disabled, ended:
	}
	return s
}

// capabilities returns the property CAP: RDY follows EN within 7.5 s.
func (c *Config) capabilities() capsule.CAP {
	return capsule.CAP{MQES: uint16(c.Limits.QueueEntries - 1), CQR: true, TO: 15, CSS: capsule.CSSNVM}
}

// property executes Property Get and Property Set.
func (q *Queue) property(c *capsule.SQE, d *capsule.Data, out []Action) []Action {
	m := capsule.ParseProperty(c)
	if s := m.Check(); !s.OK() {
		return q.reply(c.CID, d, failed(s), out)
	}
	if m.Set {
		out = q.reply(c.CID, d, succeeded(0), out)
		return q.ctrl.configure(capsule.ParseCC(uint32(m.Value)), out)
	}
	return q.reply(c.CID, d, succeeded(q.ctrl.propertyValue(m.Offset)), out)
}

// propertyValue returns the value of an existing property.
func (c *Controller) propertyValue(off uint32) uint64 {
	switch off {
	case capsule.PropCAP:
		return c.t.cfg.capabilities().Value()
	case capsule.PropVS:
		return uint64(capsule.Version13)
	case capsule.PropCC:
		return uint64(c.cc.Value())
	}
	return uint64(c.csts().Value())
}

// configure stores CC, and makes the transition that it requests. Other fields have no effect while EN is set.
func (c *Controller) configure(cc capsule.CC, out []Action) []Action {
	c.cc = cc
	s := c.state()
	switch {
	case cc.EN && s == disabled:
		c.enable()
	case !cc.EN && s != disabled && s != resetting:
		return c.reset(out)
	}
	if c.state() == ready && (cc.SHN == capsule.SHNNormal || cc.SHN == capsule.SHNAbrupt) {
		return c.shutDown(out)
	}
	return out
}

func (c *Controller) enable() {
	if c.cc.Supported() {
		c.enter(ready)
	} else {
		c.enter(failing)
	}
}

// reset closes the I/O queues. The controller is disabled when they have ended.
func (c *Controller) reset(out []Action) []Action {
	c.enter(resetting)
	for _, q := range c.queues[1:] {
		if q != nil {
			out = c.t.close(q, out)
		}
	}
	out = c.events.reset(out)
	c.cacheOff.Store(false)
	c.granted = c.t.cfg.Limits.IOQueues
	return c.resetDone(out)
}

// resetDone checks whether a reset is over. The host may have written CC meanwhile.
func (c *Controller) resetDone(out []Action) []Action {
	if c.state() != resetting || c.io > 0 {
		return out
	}
	c.enter(disabled)
	return c.configure(c.cc, out)
}

// shutDown requests a flush of the volatile namespaces. A running flush may have begun too early: another one follows it.
func (c *Controller) shutDown(out []Action) []Action {
	if len(c.sub.namespaces.Load().volatile) == 0 {
		c.enter(shut)
		return out
	}
	c.enter(shutting)
	if c.sub.flushing {
		return out
	}
	c.sub.flushing = true
	return append(out, Action{Do: DoFlush, Queue: c.admin, Controller: c})
}

// Flush begins a flush for all controllers of the subsystem of c that are shutting down, and returns the namespaces to flush. more is false
// if there are no such controllers, because their hosts have reset them or have left: DoFlush is then done.
func (t *Target) Flush(c *Controller) (list []*Namespace, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.sub.flushing = false
	for _, o := range c.sub.controllers {
		if o.state() == shutting {
			o.enter(flushing)
			c.sub.flushing = true
		}
	}
	return c.sub.namespaces.Load().volatile, c.sub.flushing
}

// Flushed reports that the flush is done. If the status is not Success, data that hosts have written may be lost: they see
// CSTS.CFS, and the shutdown does not complete.
func (t *Target) Flushed(c *Controller, status capsule.Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range c.sub.controllers {
		switch {
		case o.state() != flushing: // reset meanwhile
		case status.OK():
			o.enter(shut)
		default:
			o.enter(unflushed)
		}
	}
}
