//go:build linux && !purego

package transport

import (
	"bytes"
	"net"
	"os"
	osignal "os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const soon = sleepLimit / 2 // what takes less has not waited for the end of a sleep

// within waits for c, but only until it is clear that nobody was called.
func within[T any](t *testing.T, c <-chan T, expectation string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(soon):
		require.FailNow(t, "not in time", expectation)
	}
	panic("unreachable")
}

func TestSleeperIsCalledAtOnce(t *testing.T) {
	solitude(t)
	s, far := loner(t)
	var delay atomic.Int64
	for round := range 2000 {
		read := readAsync(s, make([]byte, 1))
		for range round % 200 * 50 { // before it falls asleep, as it does, or after
			delay.Add(1)
		}
		s.Wake()
		require.ErrorIs(t, within(t, read, "it is called, however little it has slept").err, ErrWoken)
	}
	_, err := far.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, within(t, readAsync(s, make([]byte, 1)), "it reads after all that").err)
}

func TestCallThatHasNotBegunIsRefused(t *testing.T) {
	solitude(t)
	s, _ := loner(t)
	require.True(t, lone.enter())
	defer lone.leave()
	var octet byte
	iov := unix.Iovec{Base: &octet}
	iov.SetLen(1)
	lone.msg.Iov = &iov
	lone.setBuffers(1)
	lone.call() // the signal is lost: its thread, whichever that is, does not sleep
	for _, call := range []func() (int, syscall.Errno){
		func() (int, syscall.Errno) { return lone.fallAsleep(unix.SYS_RECVMSG, s.sock.fd) },
		func() (int, syscall.Errno) { return s.sock.sleepRead([]unix.Iovec{iov}) },
	} {
		refused := make(chan syscall.Errno, 1)
		go func() {
			_, e := call()
			refused <- e
		}()
		require.Equal(t, syscall.EINTR, within(t, refused, "nobody falls asleep who was called"))
	}
}

func TestSignalThatIsNoCallDoesNotEndTheWait(t *testing.T) {
	solitude(t)
	s, far := loner(t)
	read := readAsync(s, make([]byte, 1))
	for range 20 {
		s.waits(t, inBerth, "it sleeps")
		_ = unix.Tgkill(unix.Getpid(), int(lone.thread.Load()), unix.SIGURG)
	}
	require.Empty(t, read)
	s.waits(t, inBerth, "it sleeps on")
	_, err := far.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, within(t, read, "until something comes").err)
}

func TestWakeOfASleeperThatHasReadIsLeftToTheNext(t *testing.T) {
	solitude(t)
	s, _ := loner(t)
	var w waiting
	w.init(&s.sock, &s.watch, inward, func(asleep bool) bool {
		require.True(t, asleep, "it is alone")
		w.wake()
		return true
	})
	require.NoError(t, w.wait(), "what has come is not lost")
	require.ErrorIs(t, w.wait(), ErrWoken, "nor is the wake")
}

func TestCloseEndsASleep(t *testing.T) {
	solitude(t)
	s, _ := loner(t)
	read := readAsync(s, make([]byte, 1))
	s.waits(t, inBerth, "it sleeps")
	require.NoError(t, s.Close())
	require.ErrorIs(t, within(t, read, "it is called").err, net.ErrClosed)
	require.EqualValues(t, socketClosed, s.sock.users.Load(), "the descriptor is closed")

	s, _ = loner(t)
	written := make(chan error, 1)
	go func() {
		_, err := s.Write([][]byte{make([]byte, 64<<20)}, true)
		written <- err
	}()
	s.out.sleeps(t)
	require.NoError(t, s.Abort())
	require.ErrorIs(t, within(t, written, "who writes is called, too"), net.ErrClosed)
}

// sleeps waits until w is in the berth.
func (w *waiting) sleeps(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.at == inBerth
	}, 5*time.Second, 100*time.Microsecond)
}

func TestWriterThatIsCalledLosesNothing(t *testing.T) {
	solitude(t)
	s, far := loner(t)
	sent := make([]byte, 16<<20)
	for i := range sent {
		sent[i] = byte(i >> 8 * i)
	}
	written := make(chan error, 1)
	go func() {
		_, err := s.Write([][]byte{sent[:5<<20], sent[5<<20:]}, true)
		written <- err
	}()
	var got bytes.Buffer
	buf := make([]byte, 100_000)
	for got.Len() < len(sent) {
		lone.call()
		n, err := far.Read(buf)
		require.NoError(t, err)
		got.Write(buf[:n])
	}
	require.NoError(t, within(t, written, "all is out"))
	require.True(t, bytes.Equal(sent, got.Bytes()), "each octet has come once, in order")
}

func TestSleeperDoesNotHoldUpACollection(t *testing.T) {
	solitude(t)
	s, _ := loner(t)
	read := readAsync(s, make([]byte, 1))
	s.waits(t, inBerth, "it sleeps")
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		runtime.GC()
	}()
	within(t, collected, "all that is needed of a sleeper is taken")
	s.Wake()
	require.ErrorIs(t, within(t, read, "it is called").err, ErrWoken)
}

func TestNobodySleepsWhereTheCallIsNotHeard(t *testing.T) {
	solitude(t)
	t.Cleanup(func() { lone.deaf = 0; lone.shut.Store(0) })
	s, _ := loner(t)
	limit := unix.NsecToTimeval(int64(time.Millisecond))
	require.NoError(t, unix.SetsockoptTimeval(s.sock.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit))
	var octet byte
	iov := unix.Iovec{Base: &octet}
	iov.SetLen(1)
	for range deafTimes {
		require.True(t, lone.enter(), "so far nobody knows")
		lone.msg.Iov = &iov
		lone.setBuffers(1)
		lone.state.Store(berthCalled) // by a signal that the program ignores
		_, e := lone.fallAsleep(unix.SYS_RECVMSG, s.sock.fd)
		require.Equal(t, syscall.EINTR, e, "a sleep that is not ended ends by itself")
		lone.leave()
	}
	require.False(t, lone.vacant())
}

func TestWriteAfterTheEndRaisesNoSignal(t *testing.T) {
	s, _ := loner(t)
	raised := make(chan os.Signal, 2)
	osignal.Notify(raised, unix.SIGPIPE, unix.SIGWINCH)
	defer osignal.Stop(raised)
	require.NoError(t, s.CloseWrite())
	_, err := s.Write([][]byte{{1}}, true)
	require.ErrorIs(t, err, unix.EPIPE)
	require.NoError(t, unix.Kill(unix.Getpid(), unix.SIGWINCH))
	require.Equal(t, unix.SIGWINCH, <-raised, "what was raised earlier, and has a lower number, would have come before")
}
