//go:build linux && !purego

package transport

import (
	"math"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	left := func() bool { return lone.perched.Load() == 0 && lone.state.Load() == berthFree }
	require.Eventually(t, left, 5*time.Second, 100*time.Microsecond, "goroutines of other tests that have waited are counted out, and have left")
}

// waits waits until s is parked there.
func (s *rawStream) waits(t *testing.T, there place, expectation string) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.in.mu.Lock()
		defer s.in.mu.Unlock()
		return s.in.at == there
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
		first.waits(t, inBerth, "who waits alone sleeps in the berth, again and again")
		_, err := far.Write([]byte("x"))
		require.NoError(t, err)
		require.NoError(t, (<-read).err)
	}
	require.Nil(t, first.in.perch, "it has needed no descriptor for that")

	read := readAsync(first, octet)
	first.waits(t, inBerth, "it sleeps")
	second, farther := loner(t)
	other := readAsync(second, make([]byte, 1))
	second.waits(t, onPerch, "there is no berth for another")
	first.waits(t, onPerch, "and the first has to leave it")
	_, err := farther.Write([]byte("y"))
	require.NoError(t, err)
	require.NoError(t, (<-other).err, "both wait on perches")
	_, err = far.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, (<-read).err)

	lone.shut.Store(0)
	other = readAsync(second, make([]byte, 1))
	second.waits(t, inBerth, "who is alone again comes back")
	read = readAsync(first, octet)
	first.waits(t, onPerch, "until it is not")
	second.waits(t, onPerch, "until it is not")
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
	s.waits(t, onPerch, "it waits on a perch")
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
	s.waits(t, onPerch, "it waits again")
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
		a.(*rawStream).waits(t, onPerch, "it waits on a perch")
		require.NoError(t, a.Close())
		require.Error(t, (<-read).err, "who waits learns that the connection is closed")
		a.Disarm()
		require.NoError(t, b.Close())

		c, d := pollerPair(t, nil)
		read = readAsync(c, make([]byte, 1))
		c.(*rawStream).waits(t, onPerch, "another waits on it")
		put(t, d, "x")
		require.NoError(t, (<-read).err, "and is told what is its own")
		c.Disarm()
	}
}

// descriptors counts those that are open.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(all)
}

func TestWaitsWithoutADescriptor(t *testing.T) {
	crowd(t)
	p := newPoller(t)
	a, b := pollerPair(t, p)
	s := a.(*rawStream)
	before := descriptors(t)
	octet := make([]byte, 1)
	for range 3 {
		read := readAsync(a, octet)
		s.waits(t, inPoller, "it waits for the Poller to tell it")
		put(t, b, "x")
		require.NoError(t, (<-read).err, "and reads what comes")
	}
	read := readAsync(a, octet)
	s.waits(t, inPoller, "it waits again")
	require.Equal(t, before, descriptors(t), "that takes no descriptor")
	a.Wake()
	require.ErrorIs(t, (<-read).err, ErrWoken)

	ready := newSignal()
	require.True(t, a.Arm(ready.fire), "the right to receive can be given to the Poller")
	put(t, b, "x")
	ready.want(t, "what comes is told once, to who asked last")
	_, err := a.Read(octet, false)
	require.NoError(t, err)

	read = readAsync(a, octet)
	s.waits(t, inPoller, "it waits")
	require.NoError(t, a.Close())
	require.ErrorIs(t, (<-read).err, net.ErrClosed, "who waits learns that the connection is closed")
}

func TestWhoIsBusyGetsAPerch(t *testing.T) {
	crowd(t)
	p := newPoller(t)
	a, b := pollerPair(t, p)
	s := a.(*rawStream)
	octet := make([]byte, 1)
	go func() { // answers each octet
		echo := make([]byte, 1)
		for {
			if _, err := b.Read(echo, true); err != nil {
				return
			}
			if _, err := b.Write([][]byte{echo}, true); err != nil {
				return
			}
		}
	}()
	round := func() {
		put(t, a, "x")
		_, err := a.Read(octet, true)
		require.NoError(t, err)
	}
	for deadline := time.Now().Add(30 * time.Second); s.in.perch == nil; round() {
		require.True(t, time.Now().Before(deadline), "who waits briefly again and again gets a perch")
	}
	read := readAsync(a, octet)
	s.waits(t, onPerch, "and waits there")
	time.Sleep(2 * long)
	put(t, a, "x")
	require.NoError(t, (<-read).err)
	require.Nil(t, s.in.perch, "until it has waited long")

	perches.mu.Lock()
	was := perches.lent
	perches.lent = maxPerches
	perches.mu.Unlock()
	t.Cleanup(func() {
		perches.mu.Lock()
		defer perches.mu.Unlock()
		perches.lent = was
	})
	for range 4 * busyTimes {
		round()
		require.Nil(t, s.in.perch, "where there are enough perches it goes on without")
	}
}

func TestWaitsWithoutAPoller(t *testing.T) {
	crowd(t)
	p := newPoller(t)
	a, b := pollerPair(t, p)
	require.NoError(t, p.Close())
	octet := make([]byte, 1)
	read := readAsync(a, octet)
	a.(*rawStream).waits(t, inPoller, "nobody is there to tell it")
	put(t, b, "x")
	require.NoError(t, (<-read).err, "but it looks again and again")
	read = readAsync(a, octet)
	a.(*rawStream).waits(t, inPoller, "it waits again")
	a.Wake()
	require.ErrorIs(t, (<-read).err, ErrWoken)
}

func TestReaderAndWriterWaitForOnePoller(t *testing.T) {
	crowd(t)
	p := newPoller(t)
	a, b := pollerPair(t, p)
	s := a.(*rawStream)
	read := readAsync(a, make([]byte, 1))
	s.waits(t, inPoller, "the reader waits")
	const lot = 32 << 20
	written := make(chan error, 1)
	go func() {
		_, err := a.Write([][]byte{make([]byte, lot)}, true)
		written <- err
	}()
	require.Eventually(t, func() bool {
		s.out.mu.Lock()
		defer s.out.mu.Unlock()
		return s.out.at == inPoller
	}, 5*time.Second, 100*time.Microsecond, "and the writer")
	got := make(chan int, 1)
	go func() {
		n, buf := 0, make([]byte, 1<<20)
		for n < lot {
			m, err := b.Read(buf, true)
			if err != nil {
				break
			}
			n += m
		}
		got <- n
	}()
	require.NoError(t, <-written, "the writer is told, again and again")
	require.Equal(t, lot, <-got)
	require.Empty(t, read, "which does not end the reader's wait")
	put(t, b, "x")
	require.NoError(t, (<-read).err, "nor is that forgotten")
}

// TestNoDescriptorIsKept: of sockets, perches and Pollers.
func TestNoDescriptorIsKept(t *testing.T) {
	crowd(t)
	warm, _ := pollerPair(t, newPoller(t))
	require.NoError(t, warm.Close())
	before := -1
	for range 3 {
		var all []Stream
		p := newPoller(t)
		var ends []*Poller
		for i := range 20 {
			of := p
			if i%2 == 0 {
				of = nil // waits on a perch
			}
			a, b := pollerPair(t, of)
			read := readAsync(a, make([]byte, 1))
			require.Eventually(t, func() bool {
				s := a.(*rawStream)
				s.in.mu.Lock()
				defer s.in.mu.Unlock()
				return s.in.at != nowhere
			}, 5*time.Second, 100*time.Microsecond)
			put(t, b, "x")
			require.NoError(t, (<-read).err)
			all = append(all, a, b)
		}
		ends = append(ends, p)
		for _, s := range all {
			require.NoError(t, s.Close())
			s.Disarm()
		}
		for _, p := range ends {
			require.NoError(t, p.Close())
		}
		perches.mu.Lock()
		open, idle := perches.sockets, len(perches.idle)
		perches.mu.Unlock()
		if open == 0 { // no other test has one
			require.Zero(t, idle, "perches go with the last socket")
		}
		if before >= 0 {
			require.Equal(t, before, descriptors(t), "there are as many as before")
		}
		before = descriptors(t)
	}
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
