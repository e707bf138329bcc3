//go:build linux && !purego

package transport

import (
	"math"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// crowd sees to it that nobody is alone.
func crowd(t *testing.T) {
	t.Helper()
	lone.open.Do(lone.prepare)
	was := lone.shut.Swap(math.MaxInt64)
	t.Cleanup(func() { lone.shut.Store(was) })
}

// solitude sees to it that one alone finds the berth.
func solitude(t *testing.T) {
	t.Helper()
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("there is no berth on one processor")
	}
	lone.open.Do(lone.prepare)
	lone.shut.Store(0)
	require.Zero(t, lone.perched.Load(), "everybody who has waited has been counted out")
	require.Equal(t, berthFree, lone.state.Load(), "and has left")
}

// waits waits until s is parked there: in the berth, or else on a perch.
func (s *rawStream) waits(t *testing.T, there *berth, expectation string) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.in.mu.Lock()
		defer s.in.mu.Unlock()
		return s.in.parked && s.in.berth == there
	}, 5*time.Second, 100*time.Microsecond, expectation)
}

// loner returns a Stream whose peer is not in the way.
func loner(t *testing.T) (*rawStream, net.Conn) {
	t.Helper()
	ac, bc := tcpPair(t)
	a := settled(ac, nil)
	t.Cleanup(func() { _, _ = a.Abort(), bc.Close() })
	return a.(*rawStream), bc
}

func TestWhoIsAloneHasTheBerth(t *testing.T) {
	solitude(t)
	first, far := loner(t)
	octet := make([]byte, 1)
	for range 3 {
		read := readAsync(first, octet)
		first.waits(t, &lone, "who waits alone sleeps in the berth, again and again")
		_, err := far.Write([]byte("x"))
		require.NoError(t, err)
		require.NoError(t, (<-read).err)
	}
	require.Nil(t, first.in.perch, "it has needed no descriptor for that")

	read := readAsync(first, octet)
	first.waits(t, &lone, "it sleeps")
	second, farther := loner(t)
	other := readAsync(second, make([]byte, 1))
	second.waits(t, nil, "there is no berth for another")
	first.waits(t, nil, "and the first has to leave it")
	_, err := farther.Write([]byte("y"))
	require.NoError(t, err)
	require.NoError(t, (<-other).err, "both wait on perches")
	_, err = far.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, (<-read).err)

	lone.shut.Store(0)
	other = readAsync(second, make([]byte, 1))
	second.waits(t, &lone, "who is alone again comes back")
	read = readAsync(first, octet)
	first.waits(t, nil, "until it is not")
	second.waits(t, nil, "until it is not")
	first.Wake()
	second.Wake()
	require.ErrorIs(t, (<-read).err, ErrWoken)
	require.ErrorIs(t, (<-other).err, ErrWoken)
}

func TestBerthIsShutForAWhileAfterTwoHaveMet(t *testing.T) {
	solitude(t)
	require.True(t, lone.enter())
	require.False(t, lone.enter(), "it is for one")
	lone.leave()
	require.False(t, lone.enter(), "who has met somebody may do so again")
	require.Eventually(t, func() bool { return lone.enter() }, time.Second, time.Millisecond, "but not for long")
	lone.leave()

	lone.perched.Add(1)
	require.False(t, lone.enter(), "who waits on a perch is somebody, too")
	lone.perched.Add(-1)
}

func TestPerchIsToldOfNothingInBulk(t *testing.T) {
	crowd(t)
	a, b := pollerPair(t, nil)
	s := a.(*rawStream)
	octet := make([]byte, 1)
	read := readAsync(a, octet)
	s.waits(t, nil, "it waits on a perch")
	put(t, b, "x")
	require.NoError(t, (<-read).err)
	require.True(t, s.in.stands, "one who comes back soon stays on it")

	put(t, b, string(make([]byte, 2*aLot)))
	lot := make([]byte, 2*aLot)
	require.Eventually(t, func() bool {
		n, _ := a.Read(lot, false)
		lot = lot[n:]
		return len(lot) == 0
	}, 5*time.Second, time.Millisecond)
	require.False(t, s.in.stands, "but not one to whom a lot comes, or who asks again and again")

	read = readAsync(a, octet)
	s.waits(t, nil, "it waits again")
	put(t, b, "y")
	require.NoError(t, (<-read).err, "and is told")
	p := s.in.perch
	require.NotNil(t, p)
	a.Disarm()
	require.Nil(t, s.in.perch, "nobody waits any more: the perch is given back")
}

func TestPerchOfAClosedConnectionIsUsedAgain(t *testing.T) {
	crowd(t)
	for range 3 {
		a, b := pollerPair(t, nil)
		read := readAsync(a, make([]byte, 1))
		a.(*rawStream).waits(t, nil, "it waits on a perch")
		require.NoError(t, a.Close())
		require.Error(t, (<-read).err, "who waits learns that the connection is closed")
		a.Disarm()
		require.NoError(t, b.Close())

		c, d := pollerPair(t, nil)
		read = readAsync(c, make([]byte, 1))
		c.(*rawStream).waits(t, nil, "another waits on it")
		put(t, d, "x")
		require.NoError(t, (<-read).err, "and is told what is its own")
		c.Disarm()
	}
}

func TestWaitsWithoutADescriptor(t *testing.T) {
	crowd(t)
	a, b := pollerPair(t, nil)
	for perches.Get() != nil {
	}
	noDescriptors(t)
	octet := make([]byte, 1)
	read := readAsync(a, octet)
	a.(*rawStream).waits(t, nil, "it waits")
	require.Nil(t, a.(*rawStream).in.perch)
	put(t, b, "x")
	require.NoError(t, (<-read).err, "and reads what comes")
	read = readAsync(a, octet)
	a.(*rawStream).waits(t, nil, "it waits again")
	a.Wake()
	require.ErrorIs(t, (<-read).err, ErrWoken)
}

// noDescriptors sees to it that the process gets no descriptor more.
func noDescriptors(t *testing.T) {
	t.Helper()
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: was.Max}))
	t.Cleanup(func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)) })
}

func TestManyWaitAtOnceInBothDirections(t *testing.T) {
	const pairs, rounds = 6, 200
	var done atomic.Int64
	failed := make(chan error, 2*pairs)
	for range pairs {
		a, b := pollerPair(t, nil)
		for _, end := range []struct {
			s     Stream
			first bool
		}{{a, true}, {b, false}} {
			go func() { failed <- pingpong(end.s, end.first, rounds, &done) }()
		}
	}
	deadline := time.After(30 * time.Second)
	for range 2 * pairs {
		select {
		case err := <-failed:
			require.NoError(t, err)
		case <-deadline:
			require.Fail(t, "somebody was not told", "%d of %d rounds", done.Load(), 2*pairs*rounds)
		}
	}
	require.Zero(t, lone.perched.Load(), "nobody is counted who does not wait")
}

// pingpong sends messages to and fro, every tenth of them larger than the sockets hold.
func pingpong(s Stream, first bool, rounds int, done *atomic.Int64) error {
	small, large := make([]byte, 100), make([]byte, 8<<20)
	for round := range rounds {
		m := small
		if round%50 == 49 {
			m = large
		}
		send := first == (round%2 == 0)
		if send {
			if _, err := s.Write([][]byte{m}, true); err != nil {
				return err
			}
		}
		for left := len(m); !send && left > 0; {
			n, err := s.Read(m[:left], true)
			if err != nil {
				return err
			}
			left -= n
		}
		done.Add(1)
	}
	return nil
}
