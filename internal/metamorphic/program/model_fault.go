package program

import (
	"maps"
	"slices"
	"strconv"

	"github.com/goiwarp/iwarp"
)

func itoa(n int) string { return strconv.Itoa(n) }

func sortedKeys(m map[int]*Region) []int { return slices.Sorted(maps.Keys(m)) }

// applyFault plans an operation that ends a connection. There is one fault for each connection.
func (m *model) applyFault(c *connModel, e, peer *endModel, o *Op) bool {
	switch o.Verb {
	case Close, Abort, Terminate, Cut, BadWrite, BadRead, BadAdd, BadInv, NoReceive, TooLong, Race:
	default:
		return false
	}
	if c.Fault != nil {
		return true
	}
	if o.Verb == Close {
		m.close(c, e, o)
		return true
	}
	m.fillReceives(c) // earlier messages must not delay the fault
	switch o.Verb {
	case Abort, Terminate, Cut:
		m.fails(c, o)
		m.step(Step{Kind: DoFault, End: e.End, How: string(o.Verb) + " " + o.how(), N: o.Len})
	case NoReceive:
		m.noReceive(c, e, peer, o)
	case TooLong:
		m.tooLong(c, e, peer, o)
	case Race:
		if r := e.regions[o.Region]; r != nil && r.Alive {
			m.fails(c, o)
			r.Alive = false
			m.step(Step{Kind: DoRevoke, End: e.End, Region: r, How: o.how()})
		}
	default:
		m.badAccess(c, e, peer, o)
	}
	return true
}

// fails records that the connection has its fault.
func (m *model) fails(c *connModel, o *Op) {
	fault := *o
	c.Fault = &fault
}

// noReceive plans a message that finds no receive.
func (m *model) noReceive(c *connModel, e, peer *endModel, o *Op) {
	q := peer.inbox
	if q.shared || len(q.posted) > q.messages {
		return // other connections would lack receives, or this message would find one
	}
	m.fails(c, o)
	q.closed = true
	w := &Work{Op: iwarp.OpSend, Local: e.local(o.Src, min(o.Len, messageLen))}
	m.message(peer, &Message{Op: iwarp.OpRecv, Data: w.octets(), Never: true})
	m.posts(c, e, peer, o, w)
}

// tooLong plans a message that is longer than its receive.
func (m *model) tooLong(c *connModel, e, peer *endModel, o *Op) {
	q := peer.inbox
	local := e.local(o.Src, min(max(o.Len, 1), messageLen))
	if q.shared || len(q.posted) > q.messages && q.posted[q.messages].Len >= local.n {
		return
	}
	if len(q.posted) == q.messages {
		m.receive(peer, local.n-1, 1)
	}
	m.fails(c, o)
	w := &Work{Op: iwarp.OpSend, Local: local}
	m.message(peer, &Message{Op: iwarp.OpRecv, Data: w.octets(), Never: true})
	m.posts(c, e, peer, o, w)
}

// beyond is how many octets of an out-of-bounds access lie within the bounds.
const beyond = 96

// badAccess plans an access that the peer must refuse.
func (m *model) badAccess(c *connModel, e, peer *endModel, o *Op) {
	r := peer.regions[o.Region]
	switch how := o.how(); {
	case r == nil && (how == "dead" || how == "bounds"), how == "bounds" && !r.Alive:
		return
	case how == "dead":
		m.compare(c) // the region is no longer used, and any message that invalidates it has arrived
		if r.Alive {
			m.revoke(c, peer, r, &Op{Verb: Invalidate})
		}
	}
	m.fails(c, o)
	w := &Work{Region: r, Bad: o.how(), Params: *o}
	n := max(min(o.Len, messageLen), 1)
	if w.Bad == "bounds" {
		w.To = max(len(r.Mem.First)&^(cellLen-1)-beyond, 0) // segments within the bounds may be placed
		n = min(max(n, len(r.Mem.First)-w.To+1), messageLen)
	}
	switch o.Verb {
	case BadWrite:
		w.Op, w.Local = iwarp.OpRDMAWrite, span{e.own, 0, n}
		if w.Bad == "bounds" {
			w.effect(r.Mem, w.To, w.octets()[:len(r.Mem.First)-w.To])
		}
	case BadRead:
		w.Op, w.Local = iwarp.OpRDMARead, span{e.own, 0, n}
	case BadAdd:
		w.Op, w.Local.n = iwarp.OpFetchAdd, cellLen
		w.Params = Op{Verb: FetchAdd, Add: 1}
		if w.Bad == "bounds" {
			w.To = (len(r.Mem.First) + cellLen - 1) &^ (cellLen - 1)
		}
	default:
		w.Op, w.Inval = iwarp.OpSendInvalidate, r
		m.message(peer, &Message{Op: iwarp.OpRecv, Never: true})
		m.posts(c, e, peer, o, w)
		return
	}
	m.post(c, e, o, w)
}
