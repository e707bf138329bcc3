//go:build linux && !purego

package transport

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarmSlot is what an event of the alarm carries in the place of a slot.
const alarmSlot = -1

// An alarm is the Poller's clock: a timer of the kernel's among the connections. A
// timer of the runtime would do as well, but for this: while one is pending every
// wait for a connection is a wait with a time limit, and to set the processor's timer
// each time costs more, on a virtual machine, than the rest of a short message.
type alarm struct {
	fd int // 0: none yet
	f  func()
}

// SetAlarm has f called once by the watcher after d. It replaces an alarm that is set.
func (p *Poller) SetAlarm(d time.Duration, f func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return os.ErrClosed
	}
	a := &p.alarm
	a.f = f
	if a.fd == 0 {
		if err := a.open(p.epfd); err != nil {
			return err
		}
	}
	p.start()
	in := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))}
	return os.NewSyscallError("timerfd_settime", unix.TimerfdSettime(a.fd, 0, &in, nil))
}

// open adds a timer to the epoll set.
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

// ring takes the event back and returns what is to be called. The Poller's mutex is
// held.
func (a *alarm) ring() func() {
	var expirations [8]byte
	_, _ = unix.Read(a.fd, expirations[:]) // fails if it was set anew meanwhile
	return a.f
}

func (a *alarm) close() {
	if a.fd != 0 {
		_ = unix.Close(a.fd)
	}
}
