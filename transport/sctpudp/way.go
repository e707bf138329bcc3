package sctpudp

import "net/netip"

// A way is where a packet has come from, and to which of our addresses. An answer leaves from that
// one, for the peer takes it from no other.
type way struct {
	peer netip.AddrPort
	at   netip.Addr // not valid: the system chooses
}

// back is where the answer goes. An address of IPv6 that is good on one link only can be named where the peer has such a one, too, whose
// zone is the link.
func (w way) back() destination {
	if !w.at.IsValid() || isOfLink(w.at) && w.peer.Addr().Zone() == "" {
		return destination{to: w.peer}
	}
	return destination{w.peer, leaveFrom(w.at)}
}

// isOfLink tells of an address of IPv6 that has a zone, if it is written in full.
func isOfLink(a netip.Addr) bool { return a.Is6() && !a.Is4In6() && a.IsLinkLocalUnicast() }

// local is our address as the peer knows it, of a socket that is bound to bound.
func (w way) local(bound Addr) Addr {
	at := w.at
	if isOfLink(at) {
		at = at.WithZone(w.peer.Addr().Zone())
	}
	if at.IsValid() {
		bound.UDP = netip.AddrPortFrom(at.Unmap(), bound.UDP.Port())
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
