package sctpudp

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// TestListenerAtAllAddresses answers from the address that received the request: the peer takes
// nothing from another address.
func TestListenerAtAllAddresses(t *testing.T) {
	for _, v := range []struct {
		network, host string
		at            []string
	}{
		{"udp", "", []string{"127.0.0.1", "127.0.0.2", "::1", "0.0.0.0", "::"}},
		{"udp", "0.0.0.0", []string{"127.0.0.2"}},
		{"udp4", "", []string{"127.0.0.1", "127.0.0.2"}},
		{"udp6", "", []string{"::1"}},
		{"udp6", "", []string{"::1%lo"}}, // packets come without the zone
	} {
		listen := func(ctx context.Context, _, address string) (net.PacketConn, error) {
			return new(net.ListenConfig).ListenPacket(ctx, v.network, address)
		}
		l, err := Listen(t.Context(), Config{ListenPacket: listen}, net.JoinHostPort(v.host, "0"), 16)
		if err != nil {
			continue // the machine has no such network
		}
		for _, at := range v.at {
			own := sctp.Reachable(netip.MustParseAddr(at)).String()
			if pc, err := net.ListenPacket("udp", net.JoinHostPort(own, "0")); err == nil {
				require.NoError(t, pc.Close())
				rejected(t, l, at)
			}
		}
		l.End()
	}
}

// TestListenerAtTheAddressesOfLinks: a link may have several of them for this machine, of which the system would choose one.
func TestListenerAtTheAddressesOfLinks(t *testing.T) {
	for _, v := range []struct {
		at, peer string
		leaves   bool // from the address of this machine that the peer has asked at
		local    string
	}{
		{"192.0.2.1", "192.0.2.9:5", true, "192.0.2.1:7"},
		{"::ffff:192.0.2.1", "192.0.2.9:5", true, "192.0.2.1:7"},
		{"169.254.0.1", "169.254.0.9:5", true, "169.254.0.1:7"},
		{"::ffff:169.254.0.1", "169.254.0.9:5", true, "169.254.0.1:7"},
		{"fd00::1", "[fd00::9]:5", true, "[fd00::1]:7"},
		{"fe80::1", "[fe80::9%eth0]:5", true, "[fe80::1%eth0]:7"},
		{"fe80::1", "[fd00::9]:5", false, "[fe80::1]:7"}, // the link is not known
	} {
		told := addressOf(leaveFrom(netip.MustParseAddr(v.at)))
		require.Equal(t, v.at, told.String(), "either direction has the same form")
		w := way{netip.MustParseAddrPort(v.peer), told}
		want := destination{to: w.peer}
		if v.leaves {
			want.oob = leaveFrom(told)
		}
		require.Equal(t, want, w.back(), v.at)
		require.Equal(t, v.local, w.local(Addr{UDP: netip.MustParseAddrPort("[::]:7"), Port: 7}).String())
	}
	l, err := Listen(t.Context(), Config{}, ":0", 16)
	require.NoError(t, err)
	defer l.End()
	for _, at := range linkLocals(t) {
		rejected(t, l, at)
	}
}

// linkLocals are the addresses of IPv6 that this machine has for single links and that can be used now.
func linkLocals(t *testing.T) (all []string) {
	interfaces, err := net.Interfaces()
	require.NoError(t, err)
	for _, i := range interfaces {
		addrs, err := i.Addrs()
		require.NoError(t, err)
		for _, a := range addrs {
			n, ok := a.(*net.IPNet)
			if !ok || n.IP.To4() != nil || !n.IP.IsLinkLocalUnicast() {
				continue
			}
			at := n.IP.String() + "%" + i.Name
			if pc, err := net.ListenPacket("udp", net.JoinHostPort(at, "0")); err == nil {
				require.NoError(t, pc.Close())
				all = append(all, at)
			}
		}
	}
	return all
}

// rejected asks l for a session at one of its addresses, and has it rejected.
func rejected(t *testing.T, l *Listener, at string) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c := NewClient(Config{})
	defer c.Close()
	s, err := c.Open(ctx, net.JoinHostPort(at, strconv.Itoa(int(l.e.addr.Port))))
	require.NoError(t, err, "at %s of %v", at, l.Addr())
	answered := make(chan error, 1)
	var local net.Addr
	go func() {
		r, err := l.Accept()
		if err == nil {
			local = r.LocalAddr()
			err = r.Reject(-1, -1, nil)
		}
		answered <- err
	}()
	_, _, err = sctp.Connect(ctx, s, sctp.Options{}, 1, 1, nil)
	require.ErrorAs(t, err, new(*sctp.RejectError))
	require.NoError(t, <-answered)
	require.Equal(t, s.RemoteAddr(), local, "the address that the initiator connected to")
}
