package sctpkernel

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// Network is the name of this package's network.
const Network = "sctp"

// The socket options for the addresses of either end.
const (
	localAddrs = 109 // SCTP_GET_LOCAL_ADDRS
	peerAddrs  = 108 // SCTP_GET_PEER_ADDRS
)

// An Addr is the address of an SCTP endpoint: a port, at one or more IP addresses. It is
// written as "host:port", or "host/host:port" if there are several. A name stands for one IP
// address: an IPv4 address if it has one that can be reached.
type Addr struct {
	IPs  []netip.Addr // none: all addresses of the machine
	Port uint16
}

// Network returns "sctp".
func (Addr) Network() string { return Network }

func (a Addr) String() string {
	var b strings.Builder
	for i, ip := range a.IPs {
		if i > 0 {
			b.WriteByte('/')
		}
		if ip.Is6() {
			b.WriteString("[" + ip.String() + "]")
		} else {
			b.WriteString(ip.String())
		}
	}
	return b.String() + ":" + strconv.Itoa(int(a.Port))
}

// resolve returns the address that addr denotes. Each host stands for one IP address.
func resolve(ctx context.Context, addr string) (Addr, error) {
	hosts := strings.Split(addr, "/")
	last := len(hosts) - 1
	host, service, err := net.SplitHostPort(hosts[last])
	if err != nil {
		return Addr{}, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return Addr{}, err
	}
	a := Addr{Port: uint16(port)}
	if last == 0 && host == "" {
		return a, nil
	}
	hosts[last] = host
	for _, h := range hosts {
		h = strings.TrimSuffix(strings.TrimPrefix(h, "["), "]")
		ip, err := sctp.Resolve(ctx, h)
		if err != nil {
			return Addr{}, err
		}
		a.IPs = append(a.IPs, ip)
	}
	return a, nil
}

// resolvePeer returns the address of a peer, which must have a port.
func resolvePeer(ctx context.Context, addr string) (Addr, error) {
	to, err := resolve(ctx, addr)
	if err == nil && to.Port == 0 {
		err = &net.AddrError{Err: "port 0 is no port of a peer", Addr: addr}
	}
	if err == nil && to.IPs == nil {
		to.IPs = []netip.Addr{netip.IPv4Unspecified()}
	}
	for i, ip := range to.IPs {
		to.IPs[i] = sctp.Reachable(ip)
	}
	return to, err
}
