package bottleneck

import (
	"bytes"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mib = 1 << 20

// TestRate: a mebibyte takes the time that the rate says, and arrives whole.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Rate: mib, Latency: time.Millisecond})
		defer l.Close()
		near, far := l.Pair()
		sent := bytes.Repeat([]byte("0123456789abcdef"), mib/16)
		start := time.Now()
		go func() {
			_, _ = far.Write(sent)
			_ = far.Close()
		}()
		got, err := io.ReadAll(near)
		require.NoError(t, err)
		require.True(t, bytes.Equal(sent, got))
		require.InDelta(t, 1, time.Since(start).Seconds(), 0.01)
		require.NoError(t, near.Close())
	})
}

// TestRateThatChanges: octets on the link go on at the new rate, and wait while the rate is 0.
func TestRateThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Rate: mib})
		defer l.Close()
		near, far := l.Pair()
		for _, c := range []struct{ rate, takes int64 }{{mib, 1000}, {mib / 2, 2000}, {2 * mib, 500}} {
			l.SetRate(0)
			_, err := far.Write(make([]byte, 64<<10))
			require.NoError(t, err)
			time.Sleep(time.Second)
			now, _ := l.Backlog()
			require.Equal(t, 64<<10, now, "nothing is carried")
			start := time.Now()
			l.SetRate(c.rate)
			_, err = io.ReadFull(near, make([]byte, 64<<10))
			require.NoError(t, err)
			require.InDelta(t, float64(c.takes)/16, float64(time.Since(start).Milliseconds()), 1)
		}
		require.NoError(t, far.Close())
		require.NoError(t, near.Close())
	})
}

// TestHostsShareTheLink: octets of one host queue behind those of the others on the link.
func TestHostsShareTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Rate: mib, SocketSize: 128 << 10, Buffer: 200 << 10})
		defer l.Close()
		var all sync.WaitGroup
		receive := func(c net.Conn) {
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
		for range 4 {
			near, far := l.Pair()
			all.Go(func() { receive(near) })
			all.Go(func() {
				_, _ = far.Write(make([]byte, mib))
				_ = far.Close()
			})
		}
		synctest.Wait()
		now, most := l.Backlog()
		require.Equal(t, 4*128<<10, now)
		require.Equal(t, now, most)
		require.EqualValues(t, 312<<10, l.Overflow(), "what does not fit into the buffer")
		near, far := l.Pair()
		start := time.Now()
		_, err := far.Write([]byte{1})
		require.NoError(t, err)
		_, err = near.Read(make([]byte, 1))
		require.NoError(t, err)
		require.InDelta(t, 0.5, time.Since(start).Seconds(), 0.05)
		require.NoError(t, far.Close())
		require.NoError(t, near.Close())
		all.Wait()
		require.InDelta(t, 4, time.Since(start).Seconds(), 0.05)
		now, _ = l.Backlog()
		require.Zero(t, now)
	})
}

// TestTheOtherDirectionIsFree of the queue.
func TestTheOtherDirectionIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Rate: 1, Latency: time.Millisecond})
		near, far := l.Pair()
		_, err := far.Write(make([]byte, 100))
		require.NoError(t, err)
		start := time.Now()
		_, err = near.Write([]byte{1})
		require.NoError(t, err)
		_, err = far.Read(make([]byte, 1))
		require.NoError(t, err)
		require.Equal(t, time.Millisecond, time.Since(start))
		l.Close()
		require.NoError(t, far.Close())
		require.NoError(t, near.Close())
	})
}

func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Rate: 1 << 10})
		near, far := l.Pair()
		done := make(chan error)
		go func() {
			_, err := far.Write(make([]byte, mib))
			done <- err
		}()
		synctest.Wait()
		require.NoError(t, far.(interface{ Abort() error }).Abort())
		require.ErrorIs(t, <-done, net.ErrClosed)
		_, err := near.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.NoError(t, near.Close())

		near, far = l.Pair()
		go func() {
			_, err := far.Write(make([]byte, mib))
			done <- err
		}()
		synctest.Wait()
		l.Close()
		require.ErrorIs(t, <-done, net.ErrClosed)
		require.NoError(t, far.Close())
		require.NoError(t, near.Close())
	})
}
