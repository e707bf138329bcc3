package sctpudp

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// TestListenerAtAllAddresses answers from the one that it was asked at: the peer takes nothing from
// another.
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
			if pc, err := net.ListenPacket("udp", net.JoinHostPort(at, "0")); err == nil {
				require.NoError(t, pc.Close())
				rejected(t, l, at)
			}
		}
		l.End()
	}
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
