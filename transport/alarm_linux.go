//go:build linux && !purego

package transport

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

var start = time.Now()

// now counts nanoseconds from the start of the process.
func now() int64 { return int64(time.Since(start)) }

// alarmSlot is what an event of the alarm carries in the place of a slot.
const alarmSlot = -1

// An alarm is the Poller's clock: a timer of the kernel's among the connections. A
// timer of the runtime would do as well, but for this: while one is pending every
// wait for a connection is a wait with a time limit, and to set the processor's timer
// each time costs more, on a virtual machine, than the rest of a short message.
type alarm struct {
	fd   int
	f    func()
	at   int64 // when f is due, as now counts; 0: never
	look int64 // when the Poller is to check its peerWatches; 0: never
}

// SetAlarm has f called once by the watcher after d. It replaces an alarm that is set.
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
	_ = p.alarm.set() // of such a timer never fails
}

// set sets the timer for what is due first.
func (a *alarm) set() error {
	next := a.at
	if next == 0 || a.look != 0 && a.look < next {
		next = a.look
	}
	if next == 0 {
		return nil
	}
	in := unix.ItimerSpec{Value: unix.NsecToTimespec(max(next-now(), 1))}
	return os.NewSyscallError("timerfd_settime", unix.TimerfdSettime(a.fd, 0, &in, nil))
}

// open adds a timer to the epoll set. It is there from the beginning: later there may be
// no descriptor for it.
func (a *alarm) open(epfd int) error {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return os.NewSyscallError("timerfd_create", err)
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: alarmSlot}
	if err := unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		_ = unix.Close(fd)
		return os.NewSyscallError("epoll_ctl", err)
	}
	a.fd = fd
	return nil
}

// ring takes the event back, and adds what is due to p.ready. The Poller's mutex is held.
func (p *Poller) ring() {
	a := &p.alarm
	var expirations [8]byte
	_, _ = unix.Read(a.fd, expirations[:]) // fails if it was set anew meanwhile
	t := now()
	if a.at != 0 && a.at <= t {
		a.at = 0
		p.ready = append(p.ready, a.f)
	}
	if a.look != 0 && a.look <= t {
		a.look = 0
		p.watches.looking.Go(p.look)
	}
	_ = a.set() // of such a timer never fails
}

func (a *alarm) close() { _ = unix.Close(a.fd) }
