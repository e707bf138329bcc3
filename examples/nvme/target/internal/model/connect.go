package model

import (
	"slices"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// fabrics executes a Fabrics command.
func (q *Queue) fabrics(now time.Duration, c *capsule.SQE, d *capsule.Data, out []Action) []Action {
	t := c.FCType()
	switch {
	case t == capsule.FCConnect:
		return q.connect(now, c, d, out)
	case t == capsule.FCDisconnect:
		return q.disconnect(c, d, out)
	case q.qid == 0 && (t == capsule.FCPropertyGet || t == capsule.FCPropertySet):
		return q.property(c, d, out)
	}
	return q.reply(c.CID, d, failed(capsule.StatusInvalidOpcode), out)
}

// disconnect ends an I/O queue after the response. The command does not exist for admin queues.
func (q *Queue) disconnect(c *capsule.SQE, d *capsule.Data, out []Action) []Action {
	switch {
	case q.qid == 0:
		return q.reply(c.CID, d, failed(capsule.StatusSequenceError), out)
	case capsule.ParseDisconnect(c).RecFmt != 0:
		return q.reply(c.CID, d, failed(capsule.StatusConnectFormat), out)
	}
	out = q.reply(c.CID, d, succeeded(0), out)
	out[len(out)-1].Last = true
	q.closed = true
	q.slots.cancel()
	return out
}

// connect makes the checks of Connect that need no data, and fetches the data.
func (q *Queue) connect(now time.Duration, c *capsule.SQE, d *capsule.Data, out []Action) []Action {
	if q.ctrl != nil {
		return q.reply(c.CID, d, failed(capsule.StatusSequenceError), out)
	}
	m := capsule.ParseConnect(c)
	if e := q.checkConnect(&m, d); !e.Status.OK() {
		return q.refuse(c.CID, d, &Refusal{Err: e}, out)
	}
	if d.Kind == capsule.DataInCapsule {
		return q.connectData(now, c, d, d.Octets, out)
	}
	return q.later(DoFetch, toFetch, c, d, out)
}

func (q *Queue) checkConnect(m *capsule.Connect, d *capsule.Data) capsule.ConnectError {
	most := q.depth - 1
	switch {
	case !d.Exactly(capsule.ConnectDataSize).OK():
		return capsule.ConnectError{Status: capsule.StatusInvalidSGLLength}
	case m.RecFmt != 0:
		return capsule.ConnectError{Status: capsule.StatusConnectFormat}
	case m.QID != q.qid:
		return badParameter(capsule.ParamQID)
	case m.SQSize == 0 || int(m.SQSize) > most:
		return badParameter(capsule.ParamSQSize)
	}
	return capsule.ConnectError{}
}

func badParameter(p capsule.ConnectParameter) capsule.ConnectError {
	return capsule.ConnectError{Status: capsule.StatusConnectParameter, Parameter: p}
}

// connectFetched continues a Connect whose data was in memory of the host.
func (q *Queue) connectFetched(now time.Duration, r Ref, octets []byte, out []Action) []Action {
	sl := q.slots.get(r)
	c, d := sl.sqe, sl.data
	q.slots.release(r.Slot)
	return q.connectData(now, &c, &d, octets, out)
}

// connectData makes the checks of Connect that need data. It creates nothing for a controller before all of them
// have passed.
func (q *Queue) connectData(now time.Duration, c *capsule.SQE, d *capsule.Data, octets []byte, out []Action) []Action {
	if q.ctrl != nil { // another Connect came while the data was fetched
		return q.reply(c.CID, d, failed(capsule.StatusSequenceError), out)
	}
	m := capsule.ParseConnect(c)
	data, status := capsule.ParseConnectData(octets)
	if !status.OK() {
		return q.refuse(c.CID, d, &Refusal{Err: capsule.ConnectError{Status: status}}, out)
	}
	s, e := q.checkHost(&data)
	var ctrl *Controller
	switch {
	case !e.Status.OK():
	case q.qid == 0:
		e = q.t.checkAdmin(s, &data)
	default:
		ctrl, e = q.t.checkIO(s, &data, q.qid)
	}
	if !e.Status.OK() {
		return q.refuse(c.CID, d, &Refusal{data.HostNQN, data.SubNQN, e}, out)
	}
	if q.qid == 0 {
		ctrl = q.t.newController(s, &data, &m, q)
	}
	ctrl.heard.Store(int64(now))
	q.attach(ctrl, &m)
	return q.reply(c.CID, d, succeeded(uint64(ctrl.id)), out)
}

// checkHost checks the subsystem and the host (Fabrics 1.1, 3.3).
func (q *Queue) checkHost(data *capsule.ConnectData) (*subsystem, capsule.ConnectError) {
	s := q.t.subsystem(data.SubNQN)
	if s == nil {
		return nil, badParameter(capsule.ParamSubNQN)
	}
	if p, status := data.CheckHost(); !status.OK() {
		return nil, capsule.ConnectError{Status: status, Parameter: p}
	}
	if !s.allows(data.HostNQN) || q.allow != nil && !q.allow(data) {
		return nil, capsule.ConnectError{Status: capsule.StatusConnectHost}
	}
	return s, capsule.ConnectError{}
}

// checkAdmin checks whether the limits allow another controller.
func (t *Target) checkAdmin(s *subsystem, data *capsule.ConnectData) capsule.ConnectError {
	l := &t.cfg.Limits
	switch {
	case data.CNTLID != capsule.AnyController:
		return badParameter(capsule.ParamCNTLID)
	case t.stopping || t.controllers >= l.Controllers || len(s.controllers) >= l.PerSubsystem ||
		t.perHost[data.HostNQN] >= l.PerHost:
		return capsule.ConnectError{Status: capsule.StatusConnectBusy}
	}
	return capsule.ConnectError{}
}

// checkIO finds the controller for an I/O queue. A host gets the same answer for a controller that does not exist and
// for a controller of another host.
func (t *Target) checkIO(s *subsystem, data *capsule.ConnectData, qid uint16) (*Controller, capsule.ConnectError) {
	c := s.controller(data.CNTLID)
	switch {
	case c == nil || c.hostNQN != data.HostNQN || c.hostID != data.HostID:
		return nil, badParameter(capsule.ParamCNTLID)
	case c.state() != ready || s.discovery:
		return nil, capsule.ConnectError{Status: capsule.StatusSequenceError}
	case int(qid) > c.granted:
		return nil, badParameter(capsule.ParamQID)
	case c.queues[qid] != nil:
		return nil, capsule.ConnectError{Status: capsule.StatusSequenceError}
	}
	return c, capsule.ConnectError{}
}

// attach adds the queue to the controller.
func (q *Queue) attach(c *Controller, m *capsule.Connect) {
	q.ctrl = c
	q.sqsize = m.SQSize
	q.noFlow = m.CAttr&capsule.AttrNoFlowControl != 0
	q.t.waiting = slices.DeleteFunc(q.t.waiting, func(o *Queue) bool { return o == q })
	c.queues[q.qid] = q
	if q.qid != 0 {
		c.io++
		q.io.Store(true)
	}
}
