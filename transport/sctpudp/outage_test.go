package sctpudp

import (
	"context"
	"math"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A failingSocket is a socket whose reads fail as often as failures says.
type failingSocket struct {
	net.PacketConn
	failures atomic.Int64
}

func (e *failingSocket) ReadFrom(p []byte) (int, net.Addr, error) {
	if e.failures.Load() > 0 {
		e.failures.Add(-1)
		return 0, nil, syscall.ENOMEM
	}
	return e.PacketConn.ReadFrom(p)
}

// TestListenerThatCanReadNothing reports why, until it reads something. Single errors concern packets, and are not reported.
func TestListenerThatCanReadNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &cable{ends: make(map[netip.AddrPort]*cableEnd)}
		sock := new(failingSocket)
		sock.failures.Store(outageErrors - 1)
		l, err := Listen(t.Context(), Config{ListenPacket: func(ctx context.Context, network, address string) (_ net.PacketConn, err error) {
			sock.PacketConn, err = wire.listen(ctx, network, address)
			return sock, err
		}}, "127.0.0.1:0", 1)
		require.NoError(t, err)
		defer l.End()
		defer sock.failures.Store(0)
		c := NewClient(Config{ListenPacket: wire.listen})
		defer c.Close()
		opens := func() {
			t.Helper()
			s, err := c.Open(t.Context(), l.Addr().String())
			require.NoError(t, err)
			s.Release(true)
		}
		opens()
		require.NoError(t, l.Outage())

		sock.failures.Store(math.MaxInt64) // from the next read on
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.Open(ctx, l.Addr().String())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, syscall.ENOMEM, l.Outage())
		_, err = l.Accept()
		require.Equal(t, syscall.ENOMEM, err)
		sock.failures.Store(0)
		opens()
		require.NoError(t, l.Outage())
	})
}
