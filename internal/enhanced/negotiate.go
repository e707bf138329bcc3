package enhanced

import (
	"cmp"

	"github.com/goiwarp/iwarp/transport"
)

// Limits is what one endpoint brings to the negotiation.
type Limits struct {
	IRD, ORD int           // depths; below 0 counts as 0, above MaxDepth as MaxDepth
	RTR      transport.RTR // kinds that can be sent (initiator) or taken (responder)
	Untold   bool          // an initiator leaves the depths to the ULPs: it sends Unset
	Strict   bool          // an initiator accepts a reply whose depths are both 0
}

// Agreed is the result of the negotiation, by which one endpoint must abide.
type Agreed struct {
	IRD, ORD int
	RTR      transport.RTR // the one kind to be sent or expected; none in the client-server model
}

// Request returns the data that an initiator sends: its limits, and every kind of RTR
// that it can send. A Read needs an ORD, so with an ORD of 0 it is not offered. With no
// kind of RTR, the data request the client-server model.
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

// Respond returns the answer of a responder that accepts a request, and what the
// responder must then abide by. Its limits must name at least one kind of RTR.
//
// The answer contains the real IRD even if the request's ORD is greater: the initiator
// lowers its ORD, or gives up. It names one kind of RTR, so that both ends know which to
// expect: the best of the offered kinds that the responder takes, or the best of its own
// if it takes none of those (RFC 6581 section 9.2). A Read as RTR makes the IRD at
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

// Refuse returns the data of a rejection: the depths that the responder would have
// needed. A depth of need below 0 is replaced by that of the request.
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

// Conclude returns what an initiator with these limits must abide by after the reply of
// a responder that accepted. The Fault, if any, must be sent in a Terminate message
// instead of the RTR before the connection ends: 2/0/06 if the responder may have more
// Reads outstanding than our IRD allows, 2/0/07 if it takes none of the RTRs that we can
// send.
//
// If a request for Reads is answered with both depths 0, this is not a real answer: Linux
// siw sends it if its ULP named no depths. Our own ORD then stays. With Strict limits the
// zeros are taken literally.
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
