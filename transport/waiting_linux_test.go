//go:build linux && !purego

package transport

import (
	"errors"
	"io"
	"net"
	"os"
	osignal "os/signal"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testproc"
)

// waits waits until the reader of s is in that state.
func (s *rawStream) waits(t *testing.T, there waitState, expectation string) {
	t.Helper()
	s.in.becomes(t, there, expectation)
}

func (w *waiting) becomes(t *testing.T, there waitState, expectation string) {
	t.Helper()
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.state == there
	}, 5*time.Second, 100*time.Microsecond, expectation)
}

// reads begins to read an octet. If it waits it does so there.
func (s *rawStream) reads(there waitState) <-chan readResult {
	s.in.release()
	how := Park
	switch there {
	case inSet:
		s.in.brief = busyTimes
	case inKernel:
		how = Block
	default:
	}
	read := make(chan readResult, 1)
	go func() {
		n, err := s.Read(make([]byte, 1), how)
		read <- readResult{n, err}
	}()
	return read
}

// eachWait runs a test over each way to wait.
func eachWait(t *testing.T, test func(t *testing.T, s *rawStream, there waitState, far Stream)) {
	for there, name := range map[waitState]string{inPoller: "Poller", inSet: "epoll set", inKernel: "ppoll"} {
		t.Run(name, func(t *testing.T) {
			a, b := pollerPair(t, newPoller(t))
			s := a.(*rawStream)
			test(t, s, there, b)
		})
	}
}

func TestWaitEndsWhenSomethingComes(t *testing.T) {
	eachWait(t, func(t *testing.T, s *rawStream, there waitState, far Stream) {
		for range 3 {
			read := s.reads(there)
			s.waits(t, there, "nothing has come")
			put(t, far, "x")
			require.NoError(t, (<-read).err)
		}
		read := s.reads(there)
		s.waits(t, there, "nothing has come")
		require.NoError(t, far.CloseWrite())
		require.ErrorIs(t, (<-read).err, io.EOF, "the end of the stream counts, too")
	})
}

func TestWakeEndsOneWait(t *testing.T) {
	eachWait(t, func(t *testing.T, s *rawStream, there waitState, far Stream) {
		for _, during := range []bool{true, false} {
			if !during {
				s.Wake()
				s.Wake()
			}
			read := s.reads(there)
			if during {
				s.waits(t, there, "it waits")
				s.Wake()
			}
			require.ErrorIs(t, (<-read).err, ErrWoken)
			read = s.reads(there)
			s.waits(t, there, "the next wait begins, and is not ended")
			put(t, far, "x")
			require.NoError(t, (<-read).err)
		}
	})
}

// TestWakeOfAWaitThatIsEndedAlready changes nothing: the next wait is not ended, too.
func TestWakeOfAWaitThatIsEndedAlready(t *testing.T) {
	a, _ := pollerPair(t, newPoller(t))
	w := &a.(*rawStream).in
	for _, state := range []waitState{woken, called, closed} {
		w.state = state
		w.wake()
		require.Equal(t, state, w.state)
	}
	w.state = idle
}

func TestWakeIsNotLostHoweverItComes(t *testing.T) {
	eachWait(t, func(t *testing.T, s *rawStream, there waitState, far Stream) {
		var delay atomic.Int64
		for round := range 1000 {
			read := s.reads(there)
			for range round % 200 * 50 { // before the wait begins, as it does, or after
				delay.Add(1)
			}
			s.Wake()
			require.ErrorIs(t, (<-read).err, ErrWoken)
		}
		read := readAsync(s, make([]byte, 1))
		put(t, far, "x")
		require.NoError(t, (<-read).err, "it reads after all that")
	})
}

// staysClosed reads from a closed stream, which takes nothing.
func (s *rawStream) staysClosed(t *testing.T) {
	t.Helper()
	for _, how := range []Wait{NoWait, Park, Block} {
		_, err := s.Read(make([]byte, 1), how)
		require.ErrorIs(t, err, net.ErrClosed)
	}
	require.Equal(t, closed, s.in.state)
	require.Nil(t, s.in.busy)
	require.Nil(t, s.in.event)
}

// TestWakeIsTakenBack: a wait behind one that was ended sleeps, and does not look again and again.
func TestWakeIsTakenBack(t *testing.T) {
	eachWait(t, func(t *testing.T, s *rawStream, there waitState, far Stream) {
		var attempts atomic.Int64
		try := s.in.try
		s.in.try = func() bool {
			attempts.Add(1)
			return try()
		}
		how := Park
		if there == inKernel {
			how = Block
		}
		for range 20 {
			read := s.reads(there)
			s.waits(t, there, "it waits")
			s.Wake()
			require.ErrorIs(t, (<-read).err, ErrWoken)

			attempts.Store(0)
			again := make(chan error, 1)
			go func() {
				_, err := s.Read(make([]byte, 1), how)
				again <- err
			}()
			for range 100 {
				runtime.Gosched()
			}
			put(t, far, "x")
			require.NoError(t, <-again)
			require.LessOrEqual(t, attempts.Load(), int64(3), "before the wait, and after it")
		}
	})
}

func TestCloseEndsAllWaits(t *testing.T) {
	eachWait(t, func(t *testing.T, s *rawStream, there waitState, far Stream) {
		read := s.reads(there)
		s.waits(t, there, "the reader waits")
		written := make(chan error, 1)
		go func() {
			_, err := s.Write([][]byte{make([]byte, 64<<20)}, true)
			written <- err
		}()
		s.out.becomes(t, inPoller, "the writer waits")
		s.Wake()
		require.ErrorIs(t, (<-read).err, ErrWoken)
		s.Wake()
		require.NoError(t, s.Abort())
		s.Wake()
		s.staysClosed(t)
		require.ErrorIs(t, <-written, net.ErrClosed)
		require.Equal(t, int64(socketClosed), s.sock.users.Load(), "the descriptor is closed")
		require.Nil(t, s.in.busy, "and the epoll set")
		require.Nil(t, s.in.event, "or the eventfd")
	})
	eachWait(t, func(t *testing.T, s *rawStream, there waitState, far Stream) {
		read := s.reads(there)
		s.waits(t, there, "the reader waits")
		require.NoError(t, s.Close())
		require.ErrorIs(t, (<-read).err, net.ErrClosed)
		require.Nil(t, s.in.busy, "the waiting goroutine has closed it")
		require.Nil(t, s.in.event, "or this")
		s.staysClosed(t)
		require.Zero(t, s.watch.poller.busy.Load())
	})
}

// TestWakeAndCloseMeet: whichever the reader finds, it does not wait any more.
func TestWakeAndCloseMeet(t *testing.T) {
	eachWait(t, func(t *testing.T, s *rawStream, there waitState, far Stream) {
		read := s.reads(there)
		s.waits(t, there, "the reader waits")
		s.in.mu.Lock()
		s.in.leave(called) // it cannot go on before both have come
		s.in.mu.Unlock()
		require.NoError(t, s.Close())
		if err := (<-read).err; !errors.Is(err, ErrWoken) {
			require.ErrorIs(t, err, net.ErrClosed)
		}
		s.staysClosed(t)
	})
}

// descriptors counts those that are open.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(all)
}

func TestIdleReaderTakesNoDescriptor(t *testing.T) {
	if !testproc.Alone(t) {
		return
	}
	p := newPoller(t)
	a, b := pollerPair(t, p)
	s := a.(*rawStream)
	before := descriptors(t)
	read := readAsync(a, make([]byte, 1))
	s.waits(t, inPoller, "it waits for the Poller to tell it")
	require.Equal(t, before, descriptors(t))
	put(t, b, "x")
	require.NoError(t, (<-read).err)

	read = s.reads(inSet)
	s.waits(t, inSet, "one that is busy")
	require.Equal(t, before+1, descriptors(t), "has an epoll set")
	put(t, b, "x")
	require.NoError(t, (<-read).err)
	ready := newSignal()
	require.True(t, a.Arm(ready.fire))
	require.Equal(t, before, descriptors(t), "until the connection is given to the Poller")
	require.Zero(t, p.busy.Load())
	put(t, b, "x")
	ready.want(t, "which tells what comes")
}

func TestReaderThatBlocksHasAnEventFD(t *testing.T) {
	if !testproc.Alone(t) {
		return
	}
	a, b := pollerPair(t, newPoller(t))
	s := a.(*rawStream)
	before := descriptors(t)
	waits := func(there waitState, more int, expectation string) {
		how := Park
		if there == inKernel {
			how = Block
		}
		read := make(chan readResult, 1)
		go func() {
			n, err := a.Read(make([]byte, 1), how)
			read <- readResult{n, err}
		}()
		s.waits(t, there, "it waits")
		require.Equal(t, before+more, descriptors(t), expectation)
		put(t, b, "x")
		require.NoError(t, (<-read).err)
	}
	waits(inPoller, 0, "nothing is needed to park")
	waits(inKernel, 1, "an eventfd is, to block")
	waits(inKernel, 1, "and one is enough")
	waits(inPoller, 0, "it is closed when the reader parks")
	s.in.brief = busyTimes
	waits(inSet, 1, "a busy reader has an epoll set")
	waits(inKernel, 1, "which makes way for an eventfd")
	require.True(t, a.Arm(func() {}))
	require.Equal(t, before, descriptors(t), "no idle connection keeps one")
}

func TestBusyReaderHasAnEpollSet(t *testing.T) {
	p := newPoller(t)
	a, b := pollerPair(t, p)
	s := a.(*rawStream)
	octet := make([]byte, 1)
	go func() { // answers each octet
		echo := make([]byte, 1)
		for {
			if _, err := b.Read(echo, Park); err != nil {
				return
			}
			if _, err := b.Write([][]byte{echo}, true); err != nil {
				return
			}
		}
	}()
	round := func() {
		put(t, a, "x")
		_, err := a.Read(octet, Park)
		require.NoError(t, err)
	}
	for deadline := time.Now().Add(30 * time.Second); s.in.busy == nil; round() {
		require.True(t, time.Now().Before(deadline), "a reader whose waits are brief gets an epoll set")
	}
	read := readAsync(a, octet)
	s.waits(t, inSet, "and waits there")
	time.Sleep(2 * long)
	put(t, a, "x")
	require.NoError(t, (<-read).err)
	require.Nil(t, s.in.busy, "until it has waited long")

	p.busy.Store(maxBusy)
	for range 4 * busyTimes {
		round()
		require.Nil(t, s.in.busy, "where there are enough sets it goes on without")
	}
	require.EqualValues(t, maxBusy, p.busy.Load())
}

// TestBulkIsNotReported: the runtime need not be told of what a running goroutine reads anyway.
func TestBulkIsNotReported(t *testing.T) {
	a, b := pollerPair(t, newPoller(t))
	s := a.(*rawStream)
	octet := make([]byte, 1)
	wait := func(read <-chan readResult) {
		s.waits(t, inSet, "it waits")
		require.Eventually(t, func() bool {
			s.in.mu.Lock()
			defer s.in.mu.Unlock()
			return s.in.reports
		}, 5*time.Second, 100*time.Microsecond, "what it waits for is reported")
		put(t, b, "x")
		require.NoError(t, (<-read).err)
	}
	waitBriefly := func() { // a wait that is long has the set closed
		for deadline := time.Now().Add(30 * time.Second); ; {
			wait(s.reads(inSet))
			if s.in.reports {
				return
			}
			require.True(t, time.Now().Before(deadline))
		}
	}
	waitBriefly()
	s.in.attempted(aLot - 1)
	require.True(t, s.in.reports, "a reader that gets few octets will be told again")
	s.in.attempted(aLot)
	require.False(t, s.in.reports, "but not one that gets many")
	wait(readAsync(a, octet))

	waitBriefly()
	for range vainTimes {
		_, err := a.Read(octet, NoWait)
		require.ErrorIs(t, err, ErrAgain)
	}
	require.False(t, s.in.reports, "nor is one told that polls")
	put(t, b, "y")
	_, err := a.Read(octet, Park)
	require.NoError(t, err)
}

// TestWakeOfAReaderThatHasReadIsLeftToTheNext: neither the octets that have come nor the wake are lost.
func TestWakeOfAReaderThatHasReadIsLeftToTheNext(t *testing.T) {
	a, _ := pollerPair(t, newPoller(t))
	s := a.(*rawStream)
	s.in.brief = busyTimes
	s.in.try = func() bool {
		s.Wake()
		return true
	}
	require.NoError(t, s.in.wait(Park))
	require.ErrorIs(t, s.in.wait(Park), ErrWoken)
}

func TestWaitsWithoutAPoller(t *testing.T) {
	p := newPoller(t)
	a, b := pollerPair(t, p)
	require.NoError(t, p.Close())
	octet := make([]byte, 1)
	read := readAsync(a, octet)
	a.(*rawStream).waits(t, inPoller, "nothing is there to tell it")
	put(t, b, "x")
	require.NoError(t, (<-read).err, "but it looks again and again")
	read = readAsync(a, octet)
	a.(*rawStream).waits(t, inPoller, "it waits again")
	a.Wake()
	require.ErrorIs(t, (<-read).err, ErrWoken)
}

func TestReaderAndWriterWaitForOnePoller(t *testing.T) {
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
	s.out.becomes(t, inPoller, "and the writer")
	got := make(chan int, 1)
	go func() {
		n, buf := 0, make([]byte, 1<<20)
		for n < lot {
			m, err := b.Read(buf, Park)
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

// TestNoDescriptorIsKept: of sockets, epoll sets and Pollers.
func TestNoDescriptorIsKept(t *testing.T) {
	if !testproc.Alone(t) {
		return
	}
	warm, _ := pollerPair(t, newPoller(t))
	require.NoError(t, warm.Close())
	before := descriptors(t)
	for range 3 {
		var all []*rawStream
		p := newPoller(t)
		for i := range 20 {
			there := []waitState{inPoller, inSet, inKernel}[i%3]
			ac, bc := tcpPair(t)
			a, b := settled(ac, p).(*rawStream), settled(bc, p).(*rawStream)
			read := a.reads(there)
			a.waits(t, there, "it waits")
			put(t, b, "x")
			require.NoError(t, (<-read).err)
			all = append(all, a, b)
		}
		for i, s := range all {
			require.NoError(t, s.Close())
			if i%4 == 0 {
				s.Disarm()
			}
		}
		require.NoError(t, p.Close())
		require.Equal(t, before, descriptors(t), "there are as many as before")
	}
}

func TestManyWaitAtOnceInBothDirections(t *testing.T) {
	const pairs, rounds = 6, 200
	var done atomic.Int64
	failed := make(chan error, 2*pairs)
	for range pairs {
		a, b := pollerPair(t, newPoller(t))
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
			require.Fail(t, "a reader or writer was not told", "%d of %d rounds", done.Load(), 2*pairs*rounds)
		}
	}
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
			n, err := s.Read(m[:left], Park)
			if err != nil {
				return err
			}
			left -= n
		}
		done.Add(1)
	}
	return nil
}

func TestWriteAfterTheEndRaisesNoSignal(t *testing.T) {
	s, _ := pollerPair(t, newPoller(t))
	raised := make(chan os.Signal, 2)
	osignal.Notify(raised, unix.SIGPIPE, unix.SIGWINCH)
	defer osignal.Stop(raised)
	require.NoError(t, s.CloseWrite())
	_, err := s.Write([][]byte{{1}}, true)
	require.ErrorIs(t, err, unix.EPIPE)
	require.NoError(t, unix.Kill(unix.Getpid(), unix.SIGWINCH))
	require.Equal(t, unix.SIGWINCH, <-raised, "what was raised earlier, and has a lower number, would have come before")
}
