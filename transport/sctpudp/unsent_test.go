package sctpudp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// refusing are the sockets of a cable, each of which refuses to send its first packets.
func (c *cable) refusing(packets int, why error) func(context.Context, string, string) (net.PacketConn, error) {
	return func(ctx context.Context, network, address string) (net.PacketConn, error) {
		pc, err := c.listen(ctx, network, address)
		return &refusingEnd{pc, packets, &net.OpError{Op: "write", Net: network, Err: why}}, err
	}
}

type refusingEnd struct {
	net.PacketConn
	left int
	why  error
}

func (e *refusingEnd) WriteTo(p []byte, to net.Addr) (int, error) {
	if e.left > 0 {
		e.left--
		return 0, e.why
	}
	return e.PacketConn.WriteTo(p, to)
}

// TestHandshakeWhosePacketsDoNotLeave returns an error that shows a firewall, not a silent peer, as the cause.
func TestHandshakeWhosePacketsDoNotLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &cable{ends: make(map[netip.AddrPort]*cableEnd)}
		c := NewClient(Config{ListenPacket: wire.refusing(2*handshakes, syscall.EPERM)})
		defer c.Close()
		_, err := c.Open(t.Context(), "127.0.0.1:9")
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
		require.ErrorIs(t, err, syscall.EPERM)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.Open(ctx, "127.0.0.1:9")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, syscall.EPERM)

		errAbandoned := errors.New("abandoned")
		ctx, abandon := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { abandon(errAbandoned) })
		_, err = c.Open(ctx, "127.0.0.1:9")
		require.ErrorIs(t, err, errAbandoned)
		require.ErrorIs(t, err, syscall.EPERM)
	})
}

// TestHandshakeWhoseFirstPacketsDoNotLeave: a full queue of the system passes.
func TestHandshakeWhoseFirstPacketsDoNotLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &cable{ends: make(map[netip.AddrPort]*cableEnd)}
		l, err := Listen(t.Context(), Config{ListenPacket: wire.listen}, "127.0.0.1:0", 1)
		require.NoError(t, err)
		defer l.End()
		c := NewClient(Config{ListenPacket: wire.refusing(handshakes-1, syscall.ENOBUFS)})
		defer c.Close()
		s, err := c.Open(t.Context(), l.Addr().String())
		require.NoError(t, err)
		s.Release(true)

		silent := NewClient(Config{ListenPacket: wire.refusing(handshakes-1, syscall.ENOBUFS)})
		defer silent.Close()
		_, err = silent.Open(t.Context(), "127.0.0.1:9")
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
		require.NotErrorIs(t, err, syscall.ENOBUFS, "the last one has left")
	})
}
