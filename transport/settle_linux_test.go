//go:build linux && !purego

package transport

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSettledStreamHasTheConnectionAlone(t *testing.T) {
	p := newPoller(t)
	ac, bc := tcpPair(t)
	b := settled(bc, p)
	defer b.Abort()
	before := NewStream(ac, p)
	_, err := before.Read(make([]byte, 1), NoWait)
	require.ErrorIs(t, err, ErrAgain, "set-up can find out what has come too early")
	put(t, b, "x")
	require.Eventually(t, func() bool {
		n, _ := before.Read(make([]byte, 1), NoWait)
		return n == 1
	}, 5*time.Second, time.Millisecond, "and does")

	a := Detach(before)
	require.Same(t, a, Detach(a), "it is detached once")
	require.Equal(t, ac.LocalAddr(), a.LocalAddr())
	require.Equal(t, ac.RemoteAddr(), a.RemoteAddr())
	_, err = ac.Write([]byte("y"))
	require.ErrorIs(t, err, net.ErrClosed, "the net.Conn that was taken over does not disturb the stream")
	put(t, a, "z")
	got := make([]byte, 2)
	n, err := b.Read(got, Park)
	require.NoError(t, err, "it lives")
	require.Equal(t, "z", string(got[:n]))
	require.NoError(t, a.Close())
	require.ErrorIs(t, a.Close(), net.ErrClosed, "it closes once")
	_, err = b.Read(got, Park)
	require.Error(t, err, "and no other descriptor keeps it open")
}

func TestClosedConnectionDoesNotSettle(t *testing.T) {
	ac, _ := tcpPair(t)
	require.NoError(t, ac.Close())
	s := settled(ac, newPoller(t))
	_, err := s.Read(make([]byte, 1), Park)
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestDescriptorStaysOpenWhileItIsUsed(t *testing.T) {
	a, b := pollerPair(t, newPoller(t))
	s := a.(*rawStream)
	require.True(t, s.sock.hold(), "a system call has begun")
	require.NoError(t, a.Close())
	require.False(t, s.sock.hold(), "no other can")
	_, err := b.Read(make([]byte, 1), NoWait)
	require.ErrorIs(t, err, ErrAgain, "the number is not another file's yet")
	s.sock.drop()
	_, err = b.Read(make([]byte, 1), Park)
	require.Error(t, err, "now it is closed")
}
