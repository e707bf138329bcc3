package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/damage"
	"github.com/goiwarp/iwarp/stag"
)

const (
	queueDepth = 64 // of a send queue
	inboxDepth = 512
	shortWait  = time.Millisecond // how long a message waits for a receive that will not be posted
	longWait   = time.Minute
	guard      = 64 // octets on both sides of memory, which nothing may change
)

// A host is one of the two sides that communicate.
type host struct {
	shared         *Host // not nil: it owns the RNIC, which outlives the program
	rnic           *iwarp.RNIC
	events         <-chan iwarp.Event
	pd             *iwarp.PD
	srq            *iwarp.SRQ
	windows        []*iwarp.Solicitor
	sendCQ, recvCQ *iwarp.CQ // nil: each queue pair has its own
}

// A run executes a plan over one Config.
type run struct {
	plan    *Plan
	cfg     Config
	records ConnectFunc
	shared  *[2]*Host
	ctx     context.Context

	hold         bool
	beforeCut    func()
	listenPacket damage.ListenFunc

	hosts   [2]*host
	ends    map[End]*liveEnd
	byQP    map[*iwarp.QP]*liveEnd
	cuts    map[int]*damage.Line
	sockets *damage.Sockets // not nil: they damage datagrams
	damaged map[int]bool    // what was lost is not sent again
	mems    map[*Mem]*liveMem
	regions map[*Region]*liveRegion
	sinks   map[*Mem]*liveRegion  // of Reads with Invalidate
	slots   map[*Receive]*liveMem // memory of receives
	outcome Outcome
	counts  Counts
	lose    func(wc iwarp.WC) bool
	blind   func(octets []byte) []byte
	trace   []Entry
	line    int // of the current step
}

// A liveEnd is a queue pair, and what was observed of it.
type liveEnd struct {
	End
	qp       *iwarp.QP
	own      *iwarp.MR
	sent     []*Work    // accepted, and not compared yet
	done     []iwarp.WC // of the send queue, not compared yet
	posted   []*Receive // accepted; with an SRQ, connection 0 holds those of all connections
	got      []iwarp.WC // of the receive queue
	compared int        // of got
	arrive   []*Message // of the accepted work of the peer
	events   []iwarp.Event
}

// A liveMem is real memory, with guards.
type liveMem struct {
	all []byte
	b   []byte
}

func newLiveMem(first []byte) *liveMem {
	n := len(first)
	all := make([]byte, guard+n+guard)
	m := &liveMem{all: all, b: all[guard : guard+n : guard+n]}
	copy(m.b, first)
	return m
}

// intact reports whether the guards are unchanged.
func (m *liveMem) intact() bool {
	zero := make([]byte, guard)
	return bytes.Equal(m.all[:guard], zero) && bytes.Equal(m.all[len(m.all)-guard:], zero)
}

// execute runs all steps, and compares.
func (x *run) execute() (err error) {
	defer func() { err = errors.Join(err, x.close(err == nil)) }()
	if err := x.open(); err != nil {
		return fmt.Errorf("set-up: %w", err)
	}
	for i := range x.plan.Steps {
		s := &x.plan.Steps[i]
		x.line = s.Line
		if err := x.step(s); err != nil {
			x.note(s.End, false, "FAILS: %v", err)
			return &stepError{x.lineText(s.Line), err}
		}
	}
	return nil
}

// A stepError says which operation has failed.
type stepError struct {
	line string
	err  error
}

func (e *stepError) Error() string { return e.line + ": " + e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

// lineText names an operation.
func (x *run) lineText(line int) string {
	switch ops := x.plan.Program.Ops; {
	case line < 0:
		return "set-up"
	case line >= len(ops):
		return "end"
	default:
		return fmt.Sprintf("line %d (%v)", line, ops[line])
	}
}

func (x *run) step(s *Step) error {
	e := x.ends[s.End]
	switch s.Kind {
	case DoPost:
		return x.post(e, s.Work)
	case DoRecv:
		return x.recv(e, s.Receive)
	case DoRegist:
		return x.register(e, s)
	case DoRevoke:
		return x.revoke(e, s)
	case DoDrain:
		return x.drain(e)
	case DoCompare:
		return x.compare(s)
	case DoFault:
		return x.fault(e, s)
	default:
		return x.finish(s.End.Conn)
	}
}

// fails reports whether the connection may refuse work.
func (x *run) fails(e End) bool { return x.plan.Conns[e.Conn].Fault != nil }

// post posts one work request. A connection with a fault may already have ended.
func (x *run) post(e *liveEnd, w *Work) error {
	wr := x.request(e, w)
	return x.postAs(e, w, wr)
}

func (x *run) postAs(e *liveEnd, w *Work, wr iwarp.SendWR) error {
	x.harvest(e)
	x.note(e.End, sends(w.Op), "#%d %v", w.ID, describe(w))
	if err := e.qp.PostSend(wr); err != nil {
		if x.fails(e.End) {
			x.note(e.End, false, "#%d refused", w.ID)
			return nil
		}
		return fmt.Errorf("post #%d: %w", w.ID, err)
	}
	e.sent = append(e.sent, w)
	x.counts.Posted[w.Op]++
	if w.Message != nil {
		p := x.ends[e.peer()]
		p.arrive = append(p.arrive, w.Message)
	}
	return nil
}

// request makes the work request.
func (x *run) request(e *liveEnd, w *Work) iwarp.SendWR {
	wr := iwarp.SendWR{ID: w.ID, Op: w.Op, Flags: w.Flags, Inline: w.Inline, Imm: w.Params.imm()}
	switch w.Op {
	case iwarp.OpLocalInvalidate:
		if r := x.regions[w.Inval]; r.mw != nil {
			wr.MW = r.mw
		} else {
			wr.MR = r.mr
		}
	case iwarp.OpSendInvalidate:
		wr.Invalidate = x.invalidates(e, w)
	case iwarp.OpCommit:
		wr.Regions = []iwarp.RemoteBuffer{x.target(e, w)}
	default:
		if w.Region != nil || w.Bad != "" {
			wr.Remote = x.target(e, w)
		}
	}
	w.operands(&wr)
	if w.Local.n > 0 && w.Local.mem != nil && w.Inline == nil {
		parts := w.SGEs
		if w.confirms() {
			parts = 1 // a Read has one sink
		}
		wr.Local = split(x.local(e, w), w.Local.off, w.Local.n, parts)
	}
	return wr
}

// operands sets the operands of an atomic operation.
func (w *Work) operands(wr *iwarp.SendWR) {
	switch p := &w.Params; w.Op {
	case iwarp.OpFetchAdd:
		wr.Add, wr.AddMask = p.Add, p.Mask
	case iwarp.OpCompareSwap:
		wr.Compare, wr.CompareMask, wr.Swap, wr.SwapMask = p.Cmp, p.Mask, p.Swap, p.Mask
	case iwarp.OpSwap:
		wr.Swap, wr.SwapMask = p.Swap, p.Mask
	default:
	}
}

// local returns the region of the octets that w moves.
func (x *run) local(e *liveEnd, w *Work) *iwarp.MR {
	if w.Op != iwarp.OpRDMAReadInvalidate {
		return e.own
	}
	r := &liveRegion{}
	sink := x.memory(w.Local.mem)
	var err error
	if r.mr, err = x.hosts[e.Side].pd.RegisterMR(sink.b, stag.LocalWrite, nil); err != nil {
		panic(err) // a program reaches no limit
	}
	x.regions[&Region{Kind: "sink"}] = r
	x.sinks[w.Local.mem] = r
	return r.mr
}

// split makes SGEs of a range.
func split(mr *iwarp.MR, off, n, parts int) []iwarp.SGE {
	if n == 0 {
		return nil
	}
	var all []iwarp.SGE
	for i := range parts {
		from, to := n*i/parts, n*(i+1)/parts
		all = append(all, mr.Slice(off+from, to-from))
	}
	return all
}

// target returns the memory of the peer that w names.
func (x *run) target(e *liveEnd, w *Work) iwarp.RemoteBuffer {
	var rb iwarp.RemoteBuffer
	n := uint32(max(w.length(), w.Local.n))
	switch own := x.ends[e.peer()].own; w.Bad {
	case "stag":
		rb = own.Advertise(0, ownLen)
		rb.STag ^= 0x80 // another key
	case "access":
		rb = own.Advertise(0, ownLen)
	default:
		rb = x.regions[w.Region].lent
		rb.TO += uint64(w.To)
	}
	rb.Len = n
	return rb
}

// invalidates returns the STag that a Send invalidates.
func (x *run) invalidates(e *liveEnd, w *Work) stag.STag {
	if w.Bad == "stag" || w.Bad == "access" {
		return x.target(e, w).STag
	}
	return x.regions[w.Inval].lent.STag
}

// recv posts a receive.
func (x *run) recv(e *liveEnd, r *Receive) error {
	mem := newLiveMem(make([]byte, r.Len))
	x.slots[r] = mem
	wr := iwarp.RecvWR{ID: r.ID}
	if r.Len > 0 {
		mr, err := x.hosts[e.Side].pd.RegisterMR(mem.b, stag.LocalWrite, nil)
		if err != nil {
			return err
		}
		x.regions[&Region{Kind: "slot"}] = &liveRegion{mr: mr}
		wr.Local = split(mr, 0, r.Len, r.SGEs)
	}
	var err error
	x.note(e.End, false, "receive #%d of %d octets", r.ID, r.Len)
	if srq := x.hosts[e.Side].srq; srq != nil {
		err = srq.PostRecv(wr)
	} else {
		err = e.qp.PostRecv(wr)
	}
	if err != nil && (!x.fails(e.End) || x.hosts[e.Side].srq != nil) {
		return fmt.Errorf("post receive #%d: %w", r.ID, err)
	}
	if err == nil {
		e.posted = append(e.posted, r)
		x.counts.Receives++
	}
	return nil
}

// harvest takes all completions of an end, and of the ends that share its CQs.
func (x *run) harvest(e *liveEnd) {
	var wcs [64]iwarp.WC
	for n := 1; n > 0; {
		n = e.qp.SendCQ().Poll(wcs[:])
		for _, wc := range wcs[:n] {
			x.takeSent(x.byQP[wc.QP], wc)
		}
	}
	for n := 1; n > 0; {
		n = e.qp.RecvCQ().Poll(wcs[:])
		for _, wc := range wcs[:n] {
			x.takeReceived(x.byQP[wc.QP], wc)
		}
	}
}

func (x *run) drain(e *liveEnd) error {
	ctx := x.ctx
	if x.damaged[e.Conn] {
		var cancel context.CancelFunc // some completions may never arrive
		ctx, cancel = context.WithTimeout(ctx, damage.For)
		defer cancel()
	}
	err := e.qp.Drain(ctx)
	x.harvest(e)
	if x.fails(e.End) && x.ctx.Err() == nil {
		return nil
	}
	return err
}
