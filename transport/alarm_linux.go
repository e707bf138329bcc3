//go:build linux && !purego

package transport

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

var start = time.Now()

// now returns the nanoseconds since the start of the process.
func now() int64 { return int64(time.Since(start)) }

// alarmSlot identifies an event of the alarm; other events carry the index of a slot.
const alarmSlot = -1

// An alarm is the timer of the Poller: a timerfd in its epoll set. A timer of the Go runtime is
// not used for this reason: while one is pending, each wait for a connection has a time limit,
// and on a virtual machine setting the processor's timer for each wait costs more than the rest
// of a short message.
type alarm struct {
	fd   int
	f    func()
	at   int64 // when f is due, in the time of now; 0: never
	look int64 // when the Poller is to check its peerWatches; 0: never
}

// SetAlarm makes the watcher call f once, after d. It replaces an alarm that is set.
func (p *Poller) SetAlarm(d time.Duration, f func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return os.ErrClosed
	}
	p.alarm.f, p.alarm.at = f, now()+int64(max(d, 1))
	p.start()
	return p.alarm.set()
}

// setLook makes the Poller check its peerWatches after d, or earlier.
func (p *Poller) setLook(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := now() + int64(d)
	if p.closed || p.alarm.look != 0 && p.alarm.look <= at {
		return
	}
	p.alarm.look = at
	p.start()
	_ = p.alarm.set() // never fails for a timerfd
}

// set sets the timer to the earlier of the two times. The scheduler is not told of the call.
func (a *alarm) set() error {
	next := a.at
	if next == 0 || a.look != 0 && a.look < next {
		next = a.look
	}
	if next == 0 {
		return nil
	}
	in := unix.ItimerSpec{Value: unix.NsecToTimespec(max(next-now(), 1))}
	_, _, e := syscall.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(a.fd), 0, uintptr(unsafe.Pointer(&in)), 0, 0, 0)
	if e != 0 {
		return os.NewSyscallError("timerfd_settime", e)
	}
	return nil
}

// open adds a timer to the epoll set. The timer is created together with the Poller, because
// later the process may have no descriptor left for it.
func (a *alarm) open(epfd int) error {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return os.NewSyscallError("timerfd_create", err)
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: alarmSlot} // one event for each expiry, without a read
	if err := unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		_ = unix.Close(fd)
		return os.NewSyscallError("epoll_ctl", err)
	}
	a.fd = fd
	return nil
}

// ring adds the calls that are due to p.ready. The mutex of the Poller must be held.
func (p *Poller) ring() {
	a := &p.alarm
	t := now()
	if a.at != 0 && a.at <= t {
		a.at = 0
		p.ready = append(p.ready, a.f)
	}
	if a.look != 0 && a.look <= t {
		a.look = 0
		p.watches.looking.Go(p.look)
	}
	_ = a.set() // never fails for a timerfd
}

func (a *alarm) close() { _ = unix.Close(a.fd) }
