package enhanced

import (
	"cmp"

	"github.com/goiwarp/iwarp/transport"
)

// Limits is what one endpoint brings to the negotiation.
type Limits struct {
	IRD, ORD int           // depths; below 0 counts as 0, above MaxDepth as MaxDepth
	RTR      transport.RTR // kinds that can be sent (initiator) or taken (responder)
	Untold   bool          // an initiator leaves the depths to the ULPs: it says Unset
	Strict   bool          // an initiator believes a reply whose depths are both 0
}

// Agreed is what one endpoint has to keep to.
type Agreed struct {
	IRD, ORD int
	RTR      transport.RTR // the one kind to be sent or expected; none in the client-server model
}

// Request is what an initiator says: its limits, and every kind of RTR that it
// can send. A Read needs an ORD, so without one it is not offered. With no kind
// of RTR the client-server model is asked for.
func Request(ours Limits) Data {
	d := Data{RTR: ours.RTR, IRD: depth(ours.IRD), ORD: depth(ours.ORD)}
	if d.ORD == 0 {
		d.RTR &^= transport.RTRRead
	}
	d.PeerToPeer = d.RTR != 0
	if ours.Untold {
		d.IRD, d.ORD = Unset, Unset
	}
	return d
}

// Respond is what a responder with these limits, which must name at least one
// kind of RTR, answers to a request that it accepts, and what it then keeps to.
//
// The answer tells the real IRD even where the request's ORD is greater: the
// initiator lowers its ORD, or gives up. It names one kind of RTR, so that both
// ends know which will come: the best of those offered, or the best of our own
// if none of them is (RFC 6581 section 9.2). A Read as RTR makes the IRD at
// least 1.
func Respond(req Data, ours Limits) (Data, Agreed) {
	reply := Data{PeerToPeer: req.PeerToPeer, IRD: depth(ours.IRD), ORD: depth(ours.ORD)}
	if req.PeerToPeer {
		reply.RTR = best(req.RTR&ours.RTR, ours.RTR)
		if reply.RTR == transport.RTRRead {
			reply.IRD = max(reply.IRD, 1)
		}
	}
	if req.IRD != Unset {
		reply.ORD = min(reply.ORD, req.IRD)
	}
	agreed := Agreed{IRD: int(reply.IRD), ORD: int(reply.ORD), RTR: reply.RTR & req.RTR}
	if req.ORD == Unset {
		reply.IRD = Unset
	}
	if req.IRD == Unset {
		reply.ORD = Unset
	}
	return reply, agreed
}

// Refuse is what goes with a rejection: the depths that the responder would have
// needed. Those of need that are below 0 are as the request had them.
func Refuse(req Data, need Limits) Data {
	reply := Data{PeerToPeer: req.PeerToPeer, IRD: req.ORD, ORD: req.IRD}
	if need.IRD >= 0 {
		reply.IRD = depth(need.IRD)
	}
	if need.ORD >= 0 {
		reply.ORD = depth(need.ORD)
	}
	if req.PeerToPeer {
		reply.RTR = best(req.RTR&need.RTR, need.RTR)
	}
	return reply
}

// Conclude is what an initiator with these limits keeps to after the reply of a
// responder that accepted. The Fault, if any, is what it has to send in a
// Terminate message in place of the RTR before it ends the connection:
// 2/0/06 if the responder means to have more Reads outstanding than our IRD
// takes, 2/0/07 if it takes none of the RTRs that we can send.
//
// A reply with both depths 0 to a request for Reads is no answer but what Linux
// siw says when its ULP named no depths; our own ORD then stands. Strict limits take it
// at its word.
func Conclude(ours Limits, reply Data) (Agreed, *transport.Fault) {
	ird := depth(ours.IRD)
	agreed := Agreed{IRD: int(ird), ORD: int(depth(ours.ORD))}
	untold := reply.IRD == Unset || reply.IRD == 0 && reply.ORD == 0 && !ours.Strict
	if !untold {
		agreed.ORD = min(agreed.ORD, int(reply.IRD))
	}
	if reply.ORD != Unset && reply.ORD > ird {
		return agreed, transport.Faultf(transport.MPAInsufficientIRD,
			"the responder wants %d Reads outstanding, we take %d", reply.ORD, ird)
	}
	if !reply.PeerToPeer {
		return agreed, nil
	}
	can := ours.RTR
	if agreed.ORD == 0 {
		can &^= transport.RTRRead
	}
	agreed.RTR = best(reply.RTR&can, 0)
	if agreed.RTR == 0 {
		return agreed, transport.Faultf(transport.MPANoRTR,
			"the responder takes %v, we can send %v", reply.RTR, can)
	}
	return agreed, nil
}

// best picks one kind of set, or of other if set is empty: the one that costs
// the responder least.
func best(set, other transport.RTR) transport.RTR {
	set = cmp.Or(set, other)
	for _, kind := range []transport.RTR{transport.RTRWrite, transport.RTRRead, transport.RTRSend} {
		if set&kind != 0 {
			return kind
		}
	}
	return 0
}

func depth(n int) uint16 {
	return uint16(min(max(n, 0), MaxDepth))
}
