package iwarp_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

// TestConnectionOfMultipathTCP: package net listens with Multipath TCP by default, and the dialling peer decides whether
// it is used. Its socket has no TCP_USER_TIMEOUT.
func TestConnectionOfMultipathTCP(t *testing.T) {
	ctx := testContext(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var d net.Dialer
	d.SetMultipathTCP(true)
	a, err := d.DialContext(ctx, "tcp", l.Addr().String())
	require.NoError(t, err)
	b, err := l.Accept()
	require.NoError(t, err)
	if multipath, _ := b.(*net.TCPConn).MultipathTCP(); !multipath {
		_, _ = a.Close(), b.Close()
		t.Skip("the kernel has no Multipath TCP, or does not use it (net.mptcp.enabled)")
	}
	client, server := newSide(t, nil), newSide(t, nil)
	client.over(server, func() (net.Conn, net.Conn) { return a, b })
	const n = 1 << 20
	from, src := client.register(n, stag.LocalWrite, nil)
	to, dst := server.register(n, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
	fillRandom(from)
	require.NoError(t, client.qp.RDMAWrite(ctx, dst.Advertise(0, n), src.Slice(0, n)))
	require.NoError(t, client.qp.RDMARead(ctx, src.Slice(0, 1), dst.Advertise(0, 1)), "all is placed")
	require.Equal(t, from, to)
	require.NoError(t, client.qp.Close())
}
