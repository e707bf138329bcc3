package sctp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"

	"github.com/goiwarp/iwarp/transport"
)

// Source returns this machine's address on the route to a peer: the one that an association is
// made from (RFC 5043 section 7.2). The error says why there is no route, or that the system could not
// be asked, which [transport.Exhausted] distinguishes.
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

// Resolve returns the IP address of a host. For a name with several addresses it returns the first IPv4
// address that has a route, if there is one, as package net does to listen: both ends find the same address
// for a name such as localhost. Only link-local addresses have a zone, which is the name of the interface,
// as in the addresses of packets.
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

// Reachable returns the address of a peer that is written as ip: an unspecified address, such as that of a listener at all addresses,
// means this machine, as in package net. The peer would answer from another address.
func Reachable(ip netip.Addr) netip.Addr {
	switch {
	case !ip.IsUnspecified():
		return ip
	case ip.Is4():
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.IPv6Loopback()
}

// favorite returns the first IPv4 address that can be reached, or else the first address: a host may have only IPv6. If the system
// could not be asked it returns an error, because the peer may not be at another address.
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

// named returns ip with the name of the interface instead of its number in the zone, and without a zone unless ip is
// link-local.
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
