package sctpudp

import "net/netip"

// A way is the address that a packet came from, and that of ours to which it was sent. An answer is sent
// from the latter, because the peer accepts it from no other.
type way struct {
	peer netip.AddrPort
	at   netip.Addr // not valid: the system chooses
}

// back returns the destination of the answer. A link-local IPv6 address of ours can be named only if the peer's address is link-local, too:
// its zone is the link.
func (w way) back() destination {
	if !w.at.IsValid() || isOfLink(w.at) && w.peer.Addr().Zone() == "" {
		return destination{to: w.peer}
	}
	return destination{w.peer, leaveFrom(w.at)}
}

// isOfLink reports whether a is an IPv6 address that needs a zone.
func isOfLink(a netip.Addr) bool { return a.Is6() && !a.Is4In6() && a.IsLinkLocalUnicast() }

// local returns our address as the peer knows it, for a socket that is bound to bound.
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

// A destination is the address that packets are sent to, and the control message that names our address.
type destination struct {
	to  netip.AddrPort
	oob []byte // nil: the system chooses our address
}

// oobSize holds the control message of either direction.
const oobSize = 64
