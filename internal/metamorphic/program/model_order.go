package program

import "github.com/goiwarp/iwarp"

// An order records the work of an end that may not be done yet and for which later work may have to
// wait.
type order struct {
	sinks   []span // that Reads may still write
	sources []span // that Reads may still read
	cells   []span // that atomic operations and Commits may still use, in their order (RFC 7306 section 7)
	writes  []span // that Writes may still write
	asked   []span // the same, but the answer to a later Read shows that they are placed
}

// fenced records that all Reads have been answered.
func (o *order) fenced() { o.sinks, o.sources, o.cells, o.asked = nil, nil, nil, nil }

// note notes w.
func (o *order) note(w *Work) {
	switch target := w.target(); {
	case w.isWrite():
		o.writes = append(o.writes, target)
		return
	case isAtomic(w.Op) || w.Op == iwarp.OpCommit:
		o.cells = append(o.cells, target)
	case w.confirms():
		o.sinks, o.sources = append(o.sinks, w.Local), append(o.sources, target)
	default:
		return
	}
	o.asked, o.writes = append(o.asked, o.writes...), nil // its answer shows that they are placed
}

// mustWait reports whether w touches octets of work that it could overtake, and for which a fence waits.
func (o *order) mustWait(w *Work) bool {
	target := w.target()
	switch {
	case w.Inline == nil && w.Local.meets(o.sinks): // w sends, or reads into, octets that a Read may still write
		return true
	case w.isWrite():
		return target.meets(o.sources) || target.meets(o.cells) || target.meets(o.asked)
	case isAtomic(w.Op):
		return target.meets(o.sources)
	case w.Op == iwarp.OpSendInvalidate && w.Inval != nil:
		all := span{w.Inval.Mem, 0, len(w.Inval.Mem.First)}
		return all.meets(o.sources) || all.meets(o.cells)
	}
	return false
}

// target returns the octets of the peer that w moves, or uses.
func (w *Work) target() span {
	if w.Region == nil || w.Op == iwarp.OpRegister || w.Op == iwarp.OpBind {
		return span{}
	}
	if w.Op == iwarp.OpRDMAWrite || w.Op == iwarp.OpRDMAWriteImm {
		return span{w.Region.Mem, w.To, w.length()}
	}
	return span{w.Region.Mem, w.To, w.Local.n}
}

// length is how many octets w sends.
func (w *Work) length() int {
	if w.Inline != nil {
		return len(w.Inline)
	}
	return w.Local.n
}

// isWrite reports whether w writes memory of the peer, and may be placed ahead of earlier work.
func (w *Work) isWrite() bool { return w.Op == iwarp.OpRDMAWrite || w.Op == iwarp.OpRDMAWriteImm }

// keepOrder makes w wait for the work that it must not overtake, and notes w.
func (m *model) keepOrder(c *connModel, e *endModel, w *Work) {
	o := &e.order
	if w.isWrite() && w.target().meets(o.writes) {
		m.barrier(c, e, 0)
	}
	if o.mustWait(w) {
		w.Flags |= iwarp.ReadFence
	}
	if w.Flags&iwarp.ReadFence != 0 {
		o.fenced()
	}
	o.note(w)
}

func isAtomic(op iwarp.Op) bool {
	return op == iwarp.OpFetchAdd || op == iwarp.OpCompareSwap || op == iwarp.OpSwap
}

// barrier posts a Read of no octets, whose completion shows that all earlier Writes were placed.
func (m *model) barrier(c *connModel, e *endModel, flags iwarp.Flags) {
	m.post(c, e, &Op{}, &Work{Op: iwarp.OpRDMARead, Flags: flags})
}
