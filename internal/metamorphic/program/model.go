package program

import (
	"bytes"
	"fmt"
	"maps"

	"github.com/goiwarp/iwarp"
)

const (
	ownLen     = 8192 // of an end's own memory
	regionLen  = 4096 // the longest region
	messageLen = 4096 // the longest message
	inlineLen  = 1024
	cellLen    = 8
	maxInDoubt = 40 // about how many work requests a connection has between two comparisons
)

// A model plans a program: it performs each operation at once, which is possible because the work
// of the two ends never touches the same octet.
type model struct {
	plan  *Plan
	line  int
	conns []*connModel
	srq   *inbox // nil: each end has a receive queue of its own
}

type connModel struct {
	*ConnPlan
	ends  [2]*endModel
	ended bool // closed: nothing can be posted
}

type endModel struct {
	End
	own     *Mem
	regions map[int]*Region
	inbox   *inbox
	arrived []*Message
	works   uint64
	made    int // registrations
	order   order
}

// An inbox is a receive queue. The receives of an SRQ are not matched with messages in order.
type inbox struct {
	posted   []*Receive
	messages int
	shared   bool
	closed   bool // no receive may be posted: a message must find none
}

// New plans a program.
func New(p Program) *Plan {
	m := &model{plan: &Plan{Program: p}}
	if p.SRQ {
		m.srq = &inbox{shared: true}
	}
	for i := range p.Conns {
		m.addConn(i)
	}
	for i, o := range p.Ops {
		m.line = i
		if c := m.conns[o.End.Conn]; !c.ended {
			m.apply(c, &o)
		}
	}
	m.line = len(p.Ops)
	for _, c := range m.conns {
		m.finish(c)
	}
	return m.plan
}

func (m *model) addConn(i int) {
	c := &connModel{ConnPlan: &ConnPlan{Base: make(map[*Mem][]byte)}}
	for s := range c.ends {
		e := &endModel{End: End{i, s}, regions: make(map[int]*Region), inbox: &inbox{}}
		e.own = c.mem(e.End, "own", ownLen)
		c.Own[s] = e.own
		if s == 1 && m.srq != nil {
			e.inbox = m.srq
		}
		c.ends[s] = e
	}
	for _, o := range m.plan.Program.Ops {
		if o.Verb == NoReceive && o.End.Conn == i && !c.ends[1-o.End.Side].inbox.shared {
			c.Short[1-o.End.Side] = true
		}
	}
	m.conns = append(m.conns, c)
	m.plan.Conns = append(m.plan.Conns, c.ConnPlan)
	m.line = -1
	// The first message of the initiator lets the responder send (RFC 5044 section 7.1.2).
	m.post(c, c.ends[0], &Op{}, &Work{Op: iwarp.OpRDMAWrite})
}

func (c *connModel) mem(end End, name string, n int) *Mem {
	mem := newMem(fmt.Sprintf("%v %s", end, name), end, n)
	c.Mems = append(c.Mems, mem)
	c.Base[mem] = mem.First
	return mem
}

func (m *model) step(s Step) {
	s.Line = m.line
	m.plan.Steps = append(m.plan.Steps, s)
}

// apply plans one operation.
func (m *model) apply(c *connModel, o *Op) {
	e, peer := c.ends[o.End.Side], c.ends[1-o.End.Side]
	if len(c.InDoubt) >= maxInDoubt {
		m.compare(c) // the queues have room for this much
	}
	if m.applyWork(c, e, peer, o) || m.applyFault(c, e, peer, o) {
		return
	}
	switch o.Verb {
	case Recv:
		if !e.inbox.closed {
			m.receive(e, o.Len, o.SGEs)
		}
	case Drain:
		if c.Fault == nil {
			m.fillReceives(c)
			m.step(Step{Kind: DoDrain, End: e.End})
		}
	case Compare:
		m.compare(c)
	case Register:
		m.register(c, e, o)
	case Invalidate:
		m.invalidate(c, e, o)
	default: // no effect here
	}
}

// register lends memory.
func (m *model) register(c *connModel, e *endModel, o *Op) {
	if c.Fault != nil {
		m.registerPrivately(c, e, o)
		return
	}
	before := e.regions[o.Region]
	if before != nil && before.Alive {
		return
	}
	kind := o.how()
	if before != nil && before.Kind != kind {
		before = nil
	}
	if before != nil {
		m.compare(c) // the old region has ended, perhaps by a message that the peer has only just sent
	}
	n := min(max(o.Len, cellLen), regionLen)
	e.made++
	r := &Region{Kind: kind, Alive: true, number: o.Region}
	r.Mem = c.mem(e.End, fmt.Sprintf("r%d.%d", o.Region, e.made), n)
	e.regions[o.Region] = r
	step := Step{Kind: DoRegist, End: e.End, Region: r}
	switch kind {
	case "mr", "bound":
		r.Durable = c.mem(e.End, fmt.Sprintf("r%d.%d durable", o.Region, e.made), n)
	case "fast", "window":
		r.Before = before
		step.Work = m.enables(c, e, r, o)
	}
	m.step(step)
	if step.Work != nil {
		m.compare(c) // the registration is then in effect
	}
}

// enables returns the work of a fast registration, or of a Bind.
func (m *model) enables(c *connModel, e *endModel, r *Region, o *Op) *Work {
	w := &Work{Op: iwarp.OpRegister, Region: r}
	if r.Kind == "window" {
		w.Op = iwarp.OpBind
	}
	w.describe(o)
	c.enter(e, w)
	return w
}

// registerPrivately posts a registration on a connection that already has its fault. The peer does not know the region.
func (m *model) registerPrivately(c *connModel, e *endModel, o *Op) {
	kind := o.how()
	if e.regions[o.Region] != nil || kind != "fast" && kind != "window" {
		return
	}
	e.made++
	r := &Region{Kind: kind, Alive: true, Private: true, number: o.Region}
	r.Mem = c.mem(e.End, fmt.Sprintf("r%d.%d", o.Region, e.made), min(max(o.Len, cellLen), regionLen))
	e.regions[o.Region] = r
	m.step(Step{Kind: DoRegist, End: e.End, Region: r, Work: m.enables(c, e, r, o)})
}

// invalidate ends a region of e, if nothing may use it.
func (m *model) invalidate(c *connModel, e *endModel, o *Op) {
	switch r := e.regions[o.Region]; {
	case r == nil || !r.Alive:
	case c.Fault == nil:
		m.compare(c) // the peer's work is done
		m.revoke(c, e, r, o)
	case r.Private && o.how() == "work":
		m.revoke(c, e, r, o)
	}
}

// revoke ends a region that nothing uses.
func (m *model) revoke(c *connModel, e *endModel, r *Region, o *Op) {
	r.Alive = false
	if o.how() == "work" {
		m.post(c, e, o, &Work{Op: iwarp.OpLocalInvalidate, Inval: r})
		m.compare(c)
		return
	}
	if o.how() == "close" {
		delete(e.regions, r.number) // it cannot be registered again
	}
	m.step(Step{Kind: DoRevoke, End: e.End, Region: r, How: o.how()})
}

// receive posts a receive that is long enough for its message, if that message was sent already.
func (m *model) receive(e *endModel, n, sges int) {
	q := e.inbox
	n = min(n, messageLen)
	if q.shared {
		n = messageLen
	} else if i := len(q.posted); i < len(e.arrived) {
		n = max(n, len(e.arrived[i].Data))
	}
	r := &Receive{ID: uint64(len(q.posted)), End: e.End, Len: n, SGEs: min(max(sges, 1), 3)}
	if q.shared {
		r.End = End{0, 1}
	}
	q.posted = append(q.posted, r)
	m.step(Step{Kind: DoRecv, End: r.End, Receive: r})
}

// fillReceives posts a receive for each message that was sent.
func (m *model) fillReceives(c *connModel) {
	for _, e := range c.ends {
		for !e.inbox.closed && len(e.inbox.posted) < e.inbox.messages {
			m.receive(e, 0, 1)
		}
	}
}

// compare waits for all work of a connection, and compares.
func (m *model) compare(c *connModel) {
	if c.Fault != nil {
		return
	}
	m.fillReceives(c)
	for _, e := range c.ends {
		m.barrier(c, e, iwarp.ReadFence)
		e.order = order{}
	}
	c.InDoubt = nil
	for _, mem := range c.Mems {
		c.Base[mem] = bytes.Clone(mem.want)
	}
	m.step(Step{Kind: DoCompare, End: c.ends[0].End, Want: maps.Clone(c.Base)})
}

// finish ends a connection if nothing has ended it.
func (m *model) finish(c *connModel) {
	if c.ended {
		return
	}
	if c.Fault == nil {
		m.close(c, c.ends[0], &Op{End: c.ends[0].End, Verb: Close})
		return
	}
	m.fillReceives(c) // messages of other connections may have taken receives of the SRQ
	m.step(Step{Kind: DoFinish, End: c.ends[0].End})
}

// close ends a connection gracefully.
func (m *model) close(c *connModel, e *endModel, o *Op) {
	m.compare(c)
	for _, x := range c.ends { // a queue pair with windows that are bound does not close
		for _, n := range sortedKeys(x.regions) {
			if r := x.regions[n]; r.Alive && r.Kind == "window" {
				r.Alive = false
				m.step(Step{Kind: DoRevoke, End: x.End, Region: r, How: "verb"})
			}
		}
	}
	m.step(Step{Kind: DoFault, End: e.End, How: "close " + o.how()})
	m.step(Step{Kind: DoFinish, End: e.End})
	c.ended = true
}
