//go:build linux && !purego

package transport

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A berth is where a goroutine sleeps in the kernel, with its thread, in the very system
// call that reads or writes. To be woken there takes less than anywhere else: the scheduler
// has nothing to do with it. But a thread that sleeps in a system call keeps what it needs
// to run Go code until the scheduler's monitor takes it away, which looks for that every
// few microseconds while others need it. So the process has one berth, and it is for who is
// alone: when anybody else drives a socket the sleeper is called, and for a while nobody
// enters.
type berth struct {
	open    sync.Once
	state   atomic.Int32
	shut    atomic.Int64 // until when nobody enters, in nanoseconds of now; 0: it is open
	perched atomic.Int64 // how many are parked on a perch

	msg    unix.Msghdr  // what the sleeper's system call is given; of Iovlen see setBuffers
	thread atomic.Int32 // the sleeper's
	deaf   int          // how often in a row a sleeper was called in vain; the sleeper's
}

const (
	berthFree int32 = iota
	berthTaken
	berthCalled // the sleeper is to leave
)

// shutTime is how long the berth is shut after two have met.
const shutTime = 10 * time.Millisecond

// lone is the berth of the process.
var lone berth

var start = time.Now()

func now() int64 { return int64(time.Since(start)) }

// prepare shuts the berth for good on a single processor, which the sleeper would keep.
func (b *berth) prepare() {
	if runtime.GOMAXPROCS(0) == 1 {
		b.shut.Store(math.MaxInt64)
	}
}

// vacant reports whether enter would find the berth free.
func (b *berth) vacant() bool {
	b.open.Do(b.prepare)
	if b.perched.Load() > 0 {
		return false
	}
	if until := b.shut.Load(); until != 0 {
		if now() < until {
			return false
		}
		b.shut.CompareAndSwap(until, 0)
	}
	return b.state.Load() == berthFree
}

// enter reports whether the caller has the berth, until it leaves.
func (b *berth) enter() bool {
	if b.vacant() && b.state.CompareAndSwap(berthFree, berthTaken) {
		return true
	}
	b.disturb()
	return false
}

func (b *berth) leave() { b.state.Store(berthFree) }

// disturb is called by who drives a socket, and so is not asleep.
func (b *berth) disturb() {
	if b.state.Load() == berthTaken {
		b.shut.Store(now() + int64(shutTime))
		b.call()
	}
}

// A system call that waits is ended by a signal. But one that comes just before the call
// has begun ends nothing, and nobody can tell from outside whether it has. So the kernel is
// made to look: it reads the Msghdr when the call begins, and once more if it begins again
// after a signal. Who calls the sleeper first makes that a Msghdr which the kernel refuses,
// and then signals: a call that has begun ends, and none begins.

// tooMany is more buffers than the kernel takes: EMSGSIZE.
const tooMany = math.MaxInt32

// setBuffers sets how many buffers the system call of the sleeper has.
func (b *berth) setBuffers(n int) {
	atomic.StoreUintptr((*uintptr)(unsafe.Pointer(&b.msg.Iovlen)), uintptr(n)) // it is a size_t
}

// call ends the sleep of who is in the berth, or keeps it from beginning. The signal is the
// one by which the runtime stops a goroutine that runs for long; programs know that it may
// come at any time and for no reason.
func (b *berth) call() {
	if b.state.CompareAndSwap(berthTaken, berthCalled) {
		b.setBuffers(tooMany)
		_ = unix.Tgkill(unix.Getpid(), int(b.thread.Load()), unix.SIGURG) // fails if the thread has ended: it does not sleep
	}
}

// sleep makes a system call with iov, recvmsg or sendmsg, that waits until it has done
// something. EINTR: the sleeper was called, or the sleep has ended for no reason.
func (b *berth) sleep(call uintptr, fd int, iov []unix.Iovec) (int, syscall.Errno) {
	runtime.LockOSThread() // a signal goes to a thread
	defer runtime.UnlockOSThread()
	b.thread.Store(int32(unix.Gettid()))
	b.msg.Iov = &iov[0]
	defer func() { b.msg.Iov = nil }()
	b.setBuffers(len(iov))
	if b.state.Load() != berthTaken {
		return 0, syscall.EINTR
	}
	return b.fallAsleep(call, fd)
}

func (b *berth) fallAsleep(call uintptr, fd int) (int, syscall.Errno) {
	n, _, e := syscall.Syscall(call, uintptr(fd), uintptr(unsafe.Pointer(&b.msg)), unix.MSG_NOSIGNAL)
	if e == 0 {
		return int(n), 0
	}
	if e == syscall.EINTR || e == syscall.EMSGSIZE {
		b.deaf = 0
		return 0, syscall.EINTR
	}
	if e == syscall.EAGAIN {
		b.overslept()
		return 0, syscall.EINTR
	}
	return 0, e
}

// deafTimes is how often in a row a sleeper has to be called in vain until nobody sleeps in
// this process any more.
const deafTimes = 2

// overslept looks whether the sleeper was called, when its sleep has ended only because
// sleepLimit was over. That happens where a program ignores or blocks the signal.
func (b *berth) overslept() {
	if b.state.Load() == berthTaken {
		return
	}
	if b.deaf++; b.deaf >= deafTimes {
		b.shut.Store(math.MaxInt64)
	}
}

// doze waits until s is ready in direction dir, or closed, but for a moment at most.
func doze(s *socket, dir direction) {
	if !s.hold() {
		return
	}
	defer s.drop()
	fds := []unix.PollFd{{Fd: int32(s.fd), Events: dir.pollEvents()}}
	limit := unix.NsecToTimespec(int64(time.Millisecond))
	_, _ = unix.Ppoll(fds, &limit, nil) // fails only if a signal came
}
