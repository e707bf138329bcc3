package perf

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOrder(t *testing.T) {
	o := order{mode: modeFetch, chunk: 65536, size: 64, count: 1 << 33}
	var b bytes.Buffer
	scratch := bytes.Repeat([]byte{0xa5}, orderLen)
	require.NoError(t, o.write(&b, scratch))
	require.Equal(t, []byte{'f', 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 64, 0, 0, 0, 2, 0, 0, 0, 0}, b.Bytes(), "the octets on the wire")
	var got order
	require.NoError(t, got.read(&b, scratch))
	require.Equal(t, o, got)

	for _, bad := range []order{{chunk: 1}, {size: 1}, {chunk: 1, size: maxSize + 1}} {
		require.NoError(t, bad.write(&b, scratch))
		require.Error(t, got.read(&b, scratch), "%+v is refused", bad)
	}
	require.ErrorIs(t, got.read(&b, scratch), io.EOF)
}

// A scripted is a connection on which some octets come, and which drops what is written.
type scripted struct {
	net.Conn
	io.Reader
}

func (c *scripted) Read(p []byte) (int, error)  { return c.Reader.Read(p) }
func (c *scripted) Write(p []byte) (int, error) { return len(p), nil }

func TestServerRefusesMessagesBeyondItsBuffer(t *testing.T) {
	e := &tcpEnd{in: make([]byte, 64), out: make([]byte, 64)}
	require.ErrorContains(t, e.obey(&order{mode: modePingPong, chunk: 65, size: 65, count: 1}), "the buffer has 64")
	require.Error(t, e.obey(&order{mode: 'x', chunk: 1, size: 1}), "no such mode")

	e.in = make([]byte, 128) // sinks of several Reads
	for _, mode := range []byte{modePingPong, modeFetch} {
		e.c = &scripted{Reader: bytes.NewReader(make([]byte, 128))}
		require.ErrorContains(t, e.obey(&order{mode: mode, chunk: 1, size: 65, count: 1}), "the buffer has 64")
	}
}
