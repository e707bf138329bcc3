package tracing

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// TestAddressesAreUTF8, even that of a Unix socket, whose owner may choose any name: an exporter sends none of the spans that
// are exported with one that is not UTF-8.
func TestAddressesAreUTF8(t *testing.T) {
	r, server, client := record(t), newSide(t, 0), newSide(t, 0)
	dir := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "server"), Net: "unix"})
	if err != nil {
		t.Skip("there are no sockets of Unix: ", err)
	}
	defer func() { require.NoError(t, l.Close()) }()
	own := filepath.Join(dir, "client\xff")
	c, err := net.DialUnix("unix", &net.UnixAddr{Name: own, Net: "unix"}, l.Addr().(*net.UnixAddr))
	if err != nil {
		t.Skip("names of files are UTF-8: ", err)
	}
	dialed := make(chan error, 1)
	go func() {
		_, err := client.rnic.Client(timely(t), c, &iwarp.QPConfig{PD: client.pd})
		dialed <- err
	}()
	accepted, err := l.Accept()
	require.NoError(t, err)
	cr, err := server.rnic.Server(timely(t), accepted, nil)
	require.NoError(t, err)
	_, err = r.Accept(timely(t), cr, &iwarp.QPConfig{PD: server.pd})
	require.NoError(t, err)
	require.NoError(t, <-dialed)
	span := r.only(t)
	require.Equal(t, filepath.Join(dir, "client\uFFFD"), attributesOf(&span)["network.peer.address"])

	require.Equal(t, "a\uFFFDb", target("tcp\xfe", "a\xffb:80")[1].Value.AsString())
	require.Equal(t, "tcp\uFFFD", target("tcp\xfe", "a")[0].Value.AsString())
}
