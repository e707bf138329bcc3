package sctp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"

	"github.com/goiwarp/iwarp/transport"
)

// Source is this machine's address on the way to a peer: the one that an association is
// made from (RFC 5043 section 7.2). The error says why there is no way, or that the system could not
// be asked: [transport.Exhausted] tells.
func Source(to netip.Addr) (netip.Addr, error) {
	const any = 9
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, any)))
	if err != nil {
		return netip.Addr{}, errors.Unwrap(err) // without the name of a network that the caller does not use
	}
	defer c.Close() //nolint:errcheck // nothing was sent
	from := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
	return from.Unmap(), nil
}

// Resolve finds the IP address that a host stands for. Of a name that has several it is the first one
// of IPv4 that there is a way to, if there is one, as where package net listens: both ends find the same
// for a name such as localhost. The zone of an address is as in the addresses of packets: the name of the interface,
// and of link-local addresses alone.
func Resolve(ctx context.Context, host string) (netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return named(ip).Unmap(), nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.Addr{}, err
	}
	return favorite(ips, Source)
}

// Reachable is where a peer is whose address is written as ip: an unspecified address, such as that of a listener at all of them, means
// this machine, as in package net. The peer would answer from another one.
func Reachable(ip netip.Addr) netip.Addr {
	switch {
	case !ip.IsUnspecified():
		return ip
	case ip.Is4():
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.IPv6Loopback()
}

// favorite is the first address of IPv4 that can be reached, if there is one: a host may have IPv6 alone. Where the system could not
// be asked it is none, because the peer may not be at another one.
func favorite(ips []netip.Addr, source func(netip.Addr) (netip.Addr, error)) (netip.Addr, error) {
	for i, ip := range ips {
		ips[i] = ip.Unmap()
	}
	for _, ip := range ips {
		if !ip.Is4() {
			continue
		}
		_, err := source(ip)
		if err == nil {
			return ip, nil
		}
		if errors.Is(transport.Exhausted(err), transport.ErrExhausted) {
			return netip.Addr{}, err
		}
	}
	return ips[0], nil
}

// named returns ip with the name of the zone, where that is the number of an interface, and without a zone that says
// nothing.
func named(ip netip.Addr) netip.Addr {
	if !ip.IsLinkLocalUnicast() {
		return ip.WithZone("")
	}
	n, err := strconv.Atoi(ip.Zone())
	if err != nil {
		return ip
	}
	i, err := net.InterfaceByIndex(n)
	if err != nil {
		return ip
	}
	return ip.WithZone(i.Name)
}
