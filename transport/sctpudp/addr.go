package sctpudp

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// Network is the name of this package's network.
const Network = "sctp+udp"

// An Addr is the address of an SCTP endpoint behind a UDP port. It is written as
// "host:port" if the SCTP port and the UDP port have the same number, and otherwise as
// "host:udpport/sctpport": a kernel has one UDP port, usually 9899, for all its SCTP
// ports. A name stands for one IP address: an IPv4 address if it has one that can be
// reached.
type Addr struct {
	UDP  netip.AddrPort
	Port uint16 // of SCTP
}

// Network returns "sctp+udp".
func (Addr) Network() string { return Network }

func (a Addr) String() string {
	if a.Port == a.UDP.Port() {
		return a.UDP.String()
	}
	return fmt.Sprintf("%v/%d", a.UDP, a.Port)
}

// splitAddr removes the SCTP port, if there is one, from an address: 0 means the UDP port.
func splitAddr(addr string) (udp string, port uint16, err error) {
	udp, tail, ok := strings.Cut(addr, "/")
	if !ok {
		return udp, 0, nil
	}
	n, err := strconv.ParseUint(tail, 10, 16)
	if err != nil || n == 0 {
		return "", 0, &net.AddrError{Err: "want host:udpport or host:udpport/sctpport", Addr: addr}
	}
	return udp, uint16(n), nil
}

// resolve returns the address of a peer.
func resolve(ctx context.Context, addr string) (Addr, error) {
	udp, port, err := splitAddr(addr)
	if err != nil {
		return Addr{}, err
	}
	host, service, err := net.SplitHostPort(udp)
	if err != nil {
		return Addr{}, err
	}
	n, err := net.DefaultResolver.LookupPort(ctx, "udp", service)
	if err != nil {
		return Addr{}, err
	}
	if n == 0 {
		return Addr{}, &net.AddrError{Err: "port 0 is no port of a peer", Addr: addr}
	}
	ip, err := sctp.Resolve(ctx, cmp.Or(host, "localhost"))
	if err != nil {
		return Addr{}, err
	}
	return Addr{UDP: netip.AddrPortFrom(sctp.Reachable(ip), uint16(n)), Port: cmp.Or(port, uint16(n))}, nil
}

// addrOf returns the address of a bound socket. An unspecified SCTP port is the UDP port.
func addrOf(a net.Addr, port uint16) Addr {
	udp := unmap(a)
	return Addr{UDP: udp, Port: cmp.Or(port, udp.Port())}
}

func unmap(a net.Addr) netip.AddrPort {
	if u, ok := a.(*net.UDPAddr); ok {
		return unmapped(u.AddrPort())
	}
	return netip.AddrPort{}
}

func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
