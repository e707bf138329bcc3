package sctpudp

import "net/netip"

// A way is where a packet has come from, and to which of our addresses. An answer leaves from that
// one, for the peer takes it from no other.
type way struct {
	peer netip.AddrPort
	at   netip.Addr // not valid: the system chooses
}

// back is where the answer goes.
func (w way) back() destination {
	if !w.at.IsValid() {
		return destination{to: w.peer}
	}
	return destination{w.peer, leaveFrom(w.at)}
}

// local is our address as the peer knows it, of a socket that is bound to bound.
func (w way) local(bound Addr) Addr {
	if w.at.IsValid() {
		bound.UDP = netip.AddrPortFrom(w.at.Unmap(), bound.UDP.Port())
	}
	return bound
}

// A destination is where packets go, and how the system is told from which of our addresses.
type destination struct {
	to  netip.AddrPort
	oob []byte // nil: it chooses
}

// oobSize holds the control message of either direction.
const oobSize = 64
