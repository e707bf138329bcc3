package program

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp"
)

// describe sets the flags of w, and its number of SGEs, from o.
func (w *Work) describe(o *Op) {
	switch o.Fence {
	case "read":
		w.Flags |= iwarp.ReadFence
	case "local":
		w.Flags |= iwarp.LocalFence
	}
	if o.Unsignaled {
		w.Flags |= iwarp.Unsignaled
	}
	if o.Sol && w.Message != nil {
		w.Flags |= iwarp.Solicited
		w.Message.Sol = true
	}
	w.SGEs = min(max(o.SGEs, 1), 3)
}

// enter makes w the next work request of its queue.
func (c *connModel) enter(e *endModel, w *Work) {
	w.End, w.ID = e.End, e.works
	e.works++
	c.InDoubt = append(c.InDoubt, w)
}

// post posts w, after any barrier that it needs.
func (m *model) post(c *connModel, e *endModel, o *Op, w *Work) {
	w.describe(o)
	if w.Op == iwarp.OpLocalInvalidate {
		w.Flags |= iwarp.LocalFence // earlier work may use the STag
	}
	m.keepOrder(c, e, w)
	c.enter(e, w)
	m.step(Step{Kind: DoPost, End: e.End, Work: w})
}

// applyWork plans an operation that posts work, and reports whether o is one.
func (m *model) applyWork(c *connModel, e, peer *endModel, o *Op) bool {
	r := peer.regions[o.Region]
	if r != nil && (!r.Alive || r.Private) {
		r = nil
	}
	switch o.Verb {
	case Send:
		m.sends(c, e, peer, o, nil)
	case SendInv:
		if r != nil && (r.Kind == "mr" || r.Kind == "buffer") {
			r = nil // only the peer's application invalidates it
		}
		m.sends(c, e, peer, o, r)
	case Imm:
		m.message(peer, &Message{Op: iwarp.OpRecvImm, Imm: o.imm()})
		m.posts(c, e, peer, o, &Work{Op: iwarp.OpImmediate, Params: *o})
	case Write, WriteImm, Read, ReadInv, FetchAdd, CompareSwp, Swap, Commit:
		if r != nil {
			m.usesRegion(c, e, peer, r, o)
		}
	default:
		return false
	}
	return true
}

// imm returns the Immediate Data of an operation.
func (o *Op) imm() (b [8]byte) {
	binary.BigEndian.PutUint64(b[:], o.Imm)
	return b
}

// message plans the arrival of a message.
func (m *model) message(to *endModel, msg *Message) {
	to.arrived = append(to.arrived, msg)
	to.inbox.messages++
}

// posts posts work with the message that was planned last. If messages wait only briefly for a receive, it posts the
// receive first.
func (m *model) posts(c *connModel, e, peer *endModel, o *Op, w *Work) {
	w.Message = peer.arrived[len(peer.arrived)-1]
	w.Message.Work = w
	if c.Short[peer.Side] || c.Fault != nil {
		m.fillReceives(c)
	}
	m.post(c, e, o, w)
}

// sends plans a Send, with Invalidate if inval is not nil.
func (m *model) sends(c *connModel, e, peer *endModel, o *Op, inval *Region) {
	local := e.local(o.Src, min(o.Len, messageLen))
	if i, q := len(peer.arrived), peer.inbox; !q.shared && i < len(q.posted) {
		local.n = min(local.n, q.posted[i].Len)
	}
	w := &Work{Op: iwarp.OpSend, Local: local, Inval: inval}
	if inval != nil {
		w.Op = iwarp.OpSendInvalidate
		inval.Alive = false
	}
	w.source(o)
	m.message(peer, &Message{Op: iwarp.OpRecv, Data: w.octets(), Inval: inval})
	m.posts(c, e, peer, o, w)
}

// local returns a range of the end's own memory that begins at off.
func (e *endModel) local(off, n int) span {
	off %= ownLen
	return span{e.own, off, min(n, ownLen-off)}
}

// within returns a range of a region that begins at off.
func (r *Region) within(off, n int) (int, int) {
	size := len(r.Mem.First)
	off %= size
	return off, min(n, size-off)
}

// source makes the payload inline if the operation requests it.
func (w *Work) source(o *Op) {
	if o.Inline && w.Local.n > 0 {
		w.Local.n = min(w.Local.n, inlineLen)
		w.Inline = w.octets()
	}
}

// octets returns the octets of Local as they will be when they are sent.
func (w *Work) octets() []byte {
	if w.Local.mem == nil {
		return nil
	}
	return append([]byte{}, w.Local.mem.want[w.Local.off:][:w.Local.n]...)
}

// usesRegion plans an operation on memory of the peer.
func (m *model) usesRegion(c *connModel, e, peer *endModel, r *Region, o *Op) {
	w := &Work{Region: r, Params: *o}
	switch o.Verb {
	case Write, WriteImm:
		var n int
		w.Op = iwarp.OpRDMAWrite
		w.To, n = r.within(o.Dst, o.Len)
		w.Local = e.local(o.Src, n)
		w.source(o)
		w.effect(r.Mem, w.To, w.octets())
		if o.Verb == WriteImm {
			w.Op = iwarp.OpRDMAWriteImm
			m.message(peer, &Message{Op: iwarp.OpRecvImm, Imm: o.imm()})
			m.posts(c, e, peer, o, w)
			return
		}
	case Read, ReadInv:
		m.reads(c, e, r, w, o)
	case Commit:
		if r.Durable == nil {
			return
		}
		w.Op = iwarp.OpCommit
		var n int
		w.To, n = r.within(o.Dst, max(o.Len, 1))
		w.Local.n = n
		w.effect(r.Durable, w.To, r.Mem.want[w.To:w.To+n])
	default:
		w.Op = map[Verb]iwarp.Op{FetchAdd: iwarp.OpFetchAdd, CompareSwp: iwarp.OpCompareSwap, Swap: iwarp.OpSwap}[o.Verb]
		w.To, _ = r.within(o.Dst, 0)
		w.To = min(w.To, len(r.Mem.First)-cellLen) &^ (cellLen - 1)
		w.Local.n = cellLen
		w.Old = r.Mem.cell(w.To)
		var b [cellLen]byte
		binary.NativeEndian.PutUint64(b[:], o.atomic(w.Old))
		w.effect(r.Mem, w.To, b[:])
	}
	m.post(c, e, o, w)
}

// reads plans a Read, with Invalidate into a region of its own.
func (m *model) reads(c *connModel, e *endModel, r *Region, w *Work, o *Op) {
	var n int
	w.Op = iwarp.OpRDMARead
	w.To, n = r.within(o.Src, o.Len)
	w.Local = e.local(o.Dst, n)
	if o.Verb == ReadInv && n > 0 {
		w.Op = iwarp.OpRDMAReadInvalidate
		e.made++
		sink := c.mem(e.End, "sink."+itoa(e.made), n)
		w.Local = span{sink, 0, n}
	}
	w.effect(w.Local.mem, w.Local.off, r.Mem.want[w.To:w.To+w.Local.n])
}
