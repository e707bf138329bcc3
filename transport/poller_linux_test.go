//go:build linux && !purego

package transport

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/raceorder"
)

// pollerPair returns two ends of a TCP connection, the first of which can arm.
func pollerPair(t *testing.T, p *Poller) (a, b Stream) {
	t.Helper()
	ac, bc := tcpPair(t)
	a, b = settled(ac, p), settled(bc, newPoller(t))
	t.Cleanup(func() { _, _ = a.Abort(), b.Abort() })
	return a, b
}

// signal is a callback that a test can wait for.
type signal chan struct{}

func newSignal() signal { return make(signal, 100) }

func (s signal) fire() { s <- struct{}{} }

func (s signal) want(t *testing.T, expectation string) {
	t.Helper()
	select {
	case <-s:
	case <-time.After(5 * time.Second):
		require.Fail(t, "not called", expectation)
	}
}

func (s signal) wantIdle(t *testing.T, expectation string) {
	t.Helper()
	time.Sleep(3 * time.Millisecond)
	require.Empty(t, s, expectation)
}

func TestPollerFiresOnce(t *testing.T) {
	a, b := pollerPair(t, newPoller(t))
	s := newSignal()
	require.True(t, a.Arm(s.fire), "a TCP connection can arm")
	s.wantIdle(t, "nothing has come yet")
	put(t, b, "x")
	s.want(t, "octets have come")
	put(t, b, "y")
	s.wantIdle(t, "it fires once")
	require.True(t, a.Arm(s.fire), "it is armed again")
	s.want(t, "it fires at once if there is something to read")

	n, err := a.Read(make([]byte, 10), NoWait)
	require.NoError(t, err, "there are octets")
	require.Equal(t, 2, n, "both writes have come")
	require.True(t, a.Arm(s.fire), "it is armed again")
	s.wantIdle(t, "all was read")
	require.NoError(t, b.CloseWrite(), "the peer ends its half")
	s.want(t, "the end of the stream fires too")
}

func TestPollerDisarm(t *testing.T) {
	a, b := pollerPair(t, newPoller(t))
	s := newSignal()
	a.Disarm()
	require.True(t, a.Arm(s.fire), "armed")
	a.Disarm()
	a.Disarm()
	put(t, b, "x")
	s.wantIdle(t, "a disarmed stream is quiet")
	require.True(t, a.Arm(func() {}), "armed; there is something to read, so this one may still be called")
	a.Disarm()
	require.True(t, a.Arm(s.fire), "armed again")
	s.want(t, "the last callback counts")
	s.wantIdle(t, "and is called once")
}

func TestPollerArmReplaces(t *testing.T) {
	a, b := pollerPair(t, newPoller(t))
	s := newSignal()
	require.True(t, a.Arm(func() { t.Error("a callback that was replaced is called") }), "armed")
	require.True(t, a.Arm(s.fire), "armed twice")
	put(t, b, "x")
	s.want(t, "the second callback is called")
	s.wantIdle(t, "and is called once")
}

func TestPollerCloseWhileArmed(t *testing.T) {
	for _, end := range []func(Stream) error{Stream.Close, Stream.Abort} {
		a, _ := pollerPair(t, newPoller(t))
		s := newSignal()
		require.True(t, a.Arm(s.fire), "armed")
		require.NoError(t, end(a), "the connection is closed")
		s.want(t, "a connection that is armed reports its end")
		_, err := a.Read(make([]byte, 1), NoWait)
		require.ErrorIs(t, err, net.ErrClosed, "the end is read")
		require.False(t, a.Arm(s.fire), "a closed connection cannot be armed")
		a.Disarm()
		_ = end(a)
		s.wantIdle(t, "it fires once")
	}
}

func TestPollerForgetsADescriptorThatIsReused(t *testing.T) {
	p := newPoller(t)
	for range 50 {
		a, b := pollerPair(t, p)
		require.True(t, a.Arm(func() {}), "armed")
		put(t, b, "x") // the event may be on its way while the connection goes
		require.NoError(t, a.Close(), "closed")
		require.NoError(t, b.Close(), "closed")

		c, d := pollerPair(t, p) // most likely with the descriptors just freed
		s := newSignal()
		require.True(t, c.Arm(s.fire), "armed")
		require.Empty(t, s, "an event of the former connection does not count")
		put(t, d, "y")
		s.want(t, "the new connection's event does")
		require.NoError(t, c.Close(), "closed")
		require.NoError(t, d.Close(), "closed")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Len(t, p.slots, 1, "a slot is used again")
}

// TestSlotOfAConnectionThatCannotBeArmedIsFree, because its descriptor is closed.
func TestSlotOfAConnectionThatCannotBeArmedIsFree(t *testing.T) {
	p := newPoller(t)
	for range 3 {
		a, _ := pollerPair(t, p)
		require.True(t, a.(*rawStream).sock.close())
		require.False(t, a.Arm(func() {}))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Len(t, p.slots, 1)
	require.Len(t, p.free, 1)
}

func TestPollerManyConnections(t *testing.T) {
	const conns, rounds = 200, 3
	p := newPoller(t)
	var left sync.WaitGroup
	var octets atomic.Int64
	for range conns {
		a, b := pollerPair(t, p)
		left.Add(rounds)
		var ready func()
		ready = func() {
			n, err := a.Read(make([]byte, 10), NoWait)
			if errors.Is(err, net.ErrClosed) {
				return // the test is over
			}
			if err != nil {
				t.Errorf("ready, but %v", err)
			}
			octets.Add(int64(n))
			left.Add(-n)
			a.Arm(ready)
		}
		require.True(t, a.Arm(ready), "armed")
		go func() {
			for range rounds {
				_, _ = b.Write([][]byte{{1}}, true)
				time.Sleep(time.Millisecond)
			}
		}()
	}
	left.Wait()
	require.EqualValues(t, conns*rounds, octets.Load(), "every octet was told of")
}

func TestPollerClose(t *testing.T) {
	p, err := NewPoller()
	require.NoError(t, err, "a poller is made")
	a, _ := pollerPair(t, p)
	s := newSignal()
	require.True(t, a.Arm(s.fire), "armed")
	require.NoError(t, p.Close(), "the poller closes and its watcher ends")
	require.False(t, a.Arm(s.fire), "nothing arms any more")
	a.Disarm()
	require.NoError(t, a.Close(), "the connection closes")
	require.Empty(t, s, "nothing is called after Close")
	require.ErrorIs(t, p.Close(), net.ErrClosed, "it closes once")

	unused, err := NewPoller()
	require.NoError(t, err, "a poller is made")
	require.NoError(t, unused.Close(), "a poller that was never armed closes")
}

func TestPollerCallsAbortedConnectionsBeforeClose(t *testing.T) {
	for range 50 {
		p, err := NewPoller()
		require.NoError(t, err, "a poller is made")
		a, _ := pollerPair(t, p)
		s := newSignal()
		require.True(t, a.Arm(s.fire), "armed")
		require.NoError(t, a.Abort(), "aborted")
		require.NoError(t, p.Close(), "the poller closes")
		require.Len(t, s, 1, "the abort was told before Close returned")
	}
}

// TestRawPathDoesNotAllocate runs without the race detector only, which allocates.
func TestRawPathDoesNotAllocate(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	p := newPoller(t)
	a, b := pollerPair(t, p)
	out := [][]byte{make([]byte, 20), make([]byte, 300), nil, make([]byte, 1)}
	in := make([]byte, 1000)
	ready := func() {}
	step := func() {
		if _, err := b.Write(out, false); err != nil {
			t.Fatal(err)
		}
		a.Arm(ready)
		a.Disarm()
		for n := 0; n < 321; {
			m, err := a.Read(in, Park)
			if err != nil {
				t.Fatal(err)
			}
			n += m
		}
		if _, err := a.Read(in, NoWait); !errors.Is(err, ErrAgain) {
			t.Fatal(err)
		}
		_ = b.EMSS()
	}
	step()
	require.Zero(t, testing.AllocsPerRun(1000, step), "nothing is allocated in steady state")
}

func put(t *testing.T, s Stream, octets string) {
	t.Helper()
	_, err := s.Write([][]byte{[]byte(octets)}, true)
	require.NoError(t, err, "the peer writes")
}
