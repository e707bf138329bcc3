//go:build linux && !purego

package transport

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A berth is where a goroutine sleeps in the kernel, with its thread, until a socket is
// ready. To be woken there takes less than anywhere else: the scheduler has nothing to do
// with it. But a thread that sleeps in a system call keeps what it needs to run Go code
// until the scheduler's monitor takes it away, which looks for that every few microseconds
// while others need it. So the process has one berth, and it is for who is alone: when
// anybody else drives a socket the sleeper is asked to leave, and for a while nobody enters.
type berth struct {
	open    sync.Once
	bell    int // an eventfd
	state   atomic.Int32
	shut    atomic.Int64 // until when nobody enters, in nanoseconds of now
	perched atomic.Int64 // how many are parked on a perch
	fds     [2]unix.PollFd
}

const (
	berthFree int32 = iota
	berthTaken
	berthAsked // the sleeper is to leave
)

// shutTime is how long the berth is shut after two have met.
const shutTime = 10 * time.Millisecond

// lone is the berth of the process.
var lone berth

var start = time.Now()

func now() int64 { return int64(time.Since(start)) }

// hang gives the berth its bell. It is shut for good without one, and on a single
// processor, which the sleeper would keep.
func (b *berth) hang() {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil || runtime.GOMAXPROCS(0) == 1 {
		b.shut.Store(math.MaxInt64)
	}
	b.bell = fd
}

// enter reports whether the caller has the berth, until it leaves.
func (b *berth) enter() bool {
	b.open.Do(b.hang)
	if b.perched.Load() > 0 || now() < b.shut.Load() {
		return false
	}
	if b.state.CompareAndSwap(berthFree, berthTaken) {
		return true
	}
	b.disturb()
	return false
}

func (b *berth) leave() { b.state.Store(berthFree) }

// disturb is called by who drives a socket, and so is not asleep.
func (b *berth) disturb() {
	if b.state.Load() == berthTaken && b.state.CompareAndSwap(berthTaken, berthAsked) {
		b.shut.Store(now() + int64(shutTime))
		b.ring()
	}
}

// bellStroke is what is written to an eventfd: a number, any but 0.
var bellStroke = []byte{1, 1, 1, 1, 1, 1, 1, 1}

// ring ends the sleep of who is in the berth, or the next one before it begins.
func (b *berth) ring() {
	_, _ = unix.Write(b.bell, bellStroke) // fails only if it has been rung often
}

// sleep returns when s is ready in direction dir, or closed, or the bell rings, or for no
// reason.
func (b *berth) sleep(s *socket, dir direction) {
	if !s.hold() {
		return
	}
	defer s.drop()
	b.fds = [2]unix.PollFd{{Fd: int32(s.fd), Events: dir.pollEvents()}, {Fd: int32(b.bell), Events: unix.POLLIN}}
	_, _ = unix.Ppoll(b.fds[:], nil, nil) // fails only if a signal came
	if b.fds[1].Revents != 0 {
		var strokes [8]byte
		_, _ = unix.Read(b.bell, strokes[:]) // there are some
	}
}

// doze is a sleep without a bell: it ends soon in any case.
func doze(s *socket, dir direction) {
	if !s.hold() {
		return
	}
	defer s.drop()
	fds := []unix.PollFd{{Fd: int32(s.fd), Events: dir.pollEvents()}}
	limit := unix.NsecToTimespec(int64(time.Millisecond))
	_, _ = unix.Ppoll(fds, &limit, nil) // fails only if a signal came
}
