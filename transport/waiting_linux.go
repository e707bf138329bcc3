//go:build linux && !purego

package transport

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// A direction is one half of a connection.
type direction int

const (
	inward direction = iota
	outward
)

func (d direction) epollEvents() uint32 {
	if d == outward {
		return unix.EPOLLOUT
	}
	return unix.EPOLLIN | unix.EPOLLRDHUP
}

func (d direction) pollEvents() int16 { return int16(d.epollEvents()) } // the same numbers

// waiting is how the reading half, or the writing half, of a Stream waits for its socket. One
// goroutine at a time uses it; wake, close and tell may be called by any.
type waiting struct {
	sock  *socket
	watch *watch
	dir   direction
	try   func() bool // attempts what is waited for; false: there is nothing yet

	// Used by the goroutine that reads, or writes, alone.
	park    func(fd uintptr) bool // tryInSet, made once: a closure per wait would be allocated
	told    chan struct{}         // has one element if tell was called; nil: there has been no need
	brief   int                   // waits in a row that were brief
	reports bool                  // busy reports the socket
	vain    int                   // attempts in a row, since a wait, that found nothing

	mu    lockorder.Mutex[lockorder.Leaf]
	state waitState
	busy  *epollSet // not nil: where to park
	event *eventFD  // not nil: what ends a wait in the kernel
}

// A waitState is where the goroutine is, and whether it has been told to return. The
// transitions:
//
//	state     begin             wake               close              end
//	idle      inPoller, inSet,  woken              closed, drop       -
//	          or inKernel
//	woken     idle, ErrWoken    -                  closed, drop       -
//	inPoller  -                 called, tell       closed, tell       idle
//	inSet     -                 called, interrupt  closed, interrupt  idle
//	inKernel  -                 called, interrupt  closed, interrupt  idle
//	called    -                 -                  closed             idle, ErrWoken; woken if it is done
//	closed    closed            -                  -                  closed, drop
//
// "tell" and "interrupt" end the wait; "drop" closes the epoll set and the eventfd.
type waitState uint8

const (
	idle     waitState = iota // it does not wait
	woken                     // it does not wait, and the next wait must not begin
	inPoller                  // on a channel, until the Poller tells: no descriptor is needed
	inSet                     // in the runtime's poller, with an epoll set of its own: quicker
	inKernel                  // in ppoll(2), with its thread
	called                    // waiting, and told to return
	closed                    // for good
)

func (w *waiting) init(s *socket, watch *watch, dir direction, try func() bool) {
	w.sock, w.watch, w.dir, w.try = s, watch, dir, try
	w.park = w.tryInSet
}

const (
	// A wait shorter than briefly is brief. After busyTimes of them in a row a reader waits
	// in an epoll set of its own, which it gives up after a wait longer than long.
	briefly   = time.Millisecond
	busyTimes = 8
	long      = 10 * briefly
	// maxBusy is how many readers of one Poller may have such a set at a time.
	maxBusy = 64
	// While an epoll set reports, the runtime wakes a thread for each packet. Where a lot
	// comes, or the caller polls, that takes the processor from a goroutine that is running
	// already. So after aLot octets in one attempt, or vainTimes attempts that found nothing,
	// the set reports nothing until the next wait.
	aLot      = 32 << 10
	vainTimes = 4
)

// wait waits until try succeeds. ErrWoken: wake was called.
func (w *waiting) wait(how Wait) error {
	for {
		done, err := w.once(how)
		if done || err != nil {
			return err
		}
		if w.try() {
			return nil
		}
	}
}

// once waits until there is something to try. done: try was called, and has succeeded.
func (w *waiting) once(how Wait) (done bool, err error) {
	state, err := w.begin(how)
	if err != nil {
		return false, err
	}
	began := now()
	switch state {
	case inPoller:
		w.untilTold()
	case inSet:
		w.report(w.dir.epollEvents())
		w.vain = 0
		done = w.busy.raw.Read(w.park) == nil // else wake or close was called
	case inKernel:
		w.sleep(w.event.fd, nil)
	default: // closed
	}
	return done, w.end(done, time.Duration(now()-began))
}

// untilTold waits until the Poller calls tell; if the Poller cannot, it waits a millisecond.
func (w *waiting) untilTold() {
	if !w.watch.await(w) {
		limit := unix.NsecToTimespec(int64(time.Millisecond))
		w.sleep(-1, &limit)
		return
	}
	<-w.told
	w.watch.forget(w)
}

// sleep blocks the thread until the socket is ready, or event, which may be -1 for none, or
// the limit has passed. The scheduler is told of the system call.
func (w *waiting) sleep(event int, limit *unix.Timespec) {
	if !w.sock.hold() {
		return
	}
	defer w.sock.drop()
	fds := []unix.PollFd{{Fd: int32(w.sock.fd), Events: w.dir.pollEvents()}, {Fd: int32(event), Events: unix.POLLIN}}
	_, _ = unix.Ppoll(fds, limit, nil) // fails only if a signal came
}

// tell ends a wait that the Poller has been asked to end.
func (w *waiting) tell() {
	select {
	case w.told <- struct{}{}:
	default:
	}
}

// tryInSet is called by the runtime, which parks the goroutine where it returns false, and
// calls again when the epoll set has reported.
func (w *waiting) tryInSet(uintptr) bool { return w.try() }

// report makes the epoll set report events, or nothing.
func (w *waiting) report(events uint32) {
	if w.reports == (events != 0) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = events != 0
	if w.busy != nil {
		w.busy.control(unix.EPOLL_CTL_MOD, w.sock, events) // fails on a closed socket alone
	}
}

// attempted notes that a call that does not wait has moved n octets.
func (w *waiting) attempted(n int) {
	if n > 0 {
		w.vain = 0
	} else {
		w.vain++
	}
	if n >= aLot || w.vain >= vainTimes {
		w.report(0)
	}
}

// begin chooses where to wait, and enters that state. closed: not at all.
func (w *waiting) begin(how Wait) (waitState, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.state == woken:
		w.state = idle
		return idle, ErrWoken
	case w.state == closed:
	case how == Block && w.mayBlock():
		w.state = inKernel
	case how != Block && w.isBusy():
		w.state = inSet
	default:
		if w.told == nil {
			w.told = make(chan struct{}, 1)
		}
		w.state = inPoller
	}
	return w.state, nil
}

// mayBlock opens an eventfd in place of the epoll set, unless there is one. It reports false if
// it cannot. mu is held.
func (w *waiting) mayBlock() bool {
	if w.event != nil {
		return true
	}
	w.dropSet()
	w.reports = false
	event := new(eventFD)
	if event.open() != nil {
		return false
	}
	w.event = event
	return true
}

// isBusy reports whether there is an epoll set, and opens one for a reader whose waits were
// brief. A writer has none: it would not last from one Write to the next. mu is held.
func (w *waiting) isBusy() bool {
	w.dropEvent()
	if w.busy != nil || w.dir == outward || w.brief < busyTimes {
		return w.busy != nil
	}
	w.brief = 0 // not again at once
	p := w.watch.poller
	if p.busy.Add(1) > maxBusy {
		p.busy.Add(-1)
		return false
	}
	set := new(epollSet)
	if set.open() != nil {
		p.busy.Add(-1)
		return false
	}
	w.busy = set
	if !set.control(unix.EPOLL_CTL_ADD, w.sock, 0) {
		w.dropSet()
	}
	return w.busy != nil
}

// end leaves the state that begin entered, after a wait of the length took.
func (w *waiting) end(done bool, took time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if took < briefly {
		w.brief++
	} else {
		w.brief = 0
	}
	switch {
	case w.state == closed:
		w.drop()
	case took >= long:
		w.dropSet()
	}
	w.reports = w.reports && w.busy != nil
	if w.state == called {
		w.resume()
	}
	switch {
	case w.state == closed: // the next attempt tells
	case w.state == called && done:
		w.state = woken // the next wait tells
	case w.state == called:
		w.state = idle
		return ErrWoken
	default:
		w.state = idle
	}
	return nil
}

// resume takes the interrupt of leave back. mu is held.
func (w *waiting) resume() {
	if w.busy != nil {
		w.busy.resume()
	}
	if w.event != nil {
		w.event.resume()
	}
}

// drop closes the epoll set and the eventfd. mu is held.
func (w *waiting) drop() {
	w.dropSet()
	w.dropEvent()
}

func (w *waiting) dropEvent() {
	if w.event != nil {
		w.event.close()
		w.event = nil
	}
}

func (w *waiting) dropSet() {
	if w.busy != nil {
		_ = w.busy.close() // of an epoll set never fails
		w.busy = nil
		w.watch.poller.busy.Add(-1)
	}
}

// release closes the epoll set and the eventfd. No goroutine waits: the connection is given to
// the Poller.
func (w *waiting) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.brief, w.reports = 0, false
	w.drop()
}

// wake ends the wait, or else the next one before it begins.
func (w *waiting) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.state {
	case idle:
		w.state = woken
	case inPoller, inSet, inKernel:
		w.leave(called)
	case woken, called, closed:
	}
}

// close ends the wait, and all that follow. The socket was closed before.
func (w *waiting) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.state {
	case inPoller, inSet, inKernel:
		w.leave(closed)
	case idle, woken:
		w.drop()
		w.state = closed
	case called, closed:
		w.state = closed
	}
}

// leave makes the waiting goroutine return. mu is held.
func (w *waiting) leave(to waitState) {
	switch w.state {
	case inSet:
		w.busy.interrupt()
	case inKernel:
		w.event.interrupt()
	default:
		w.tell()
	}
	w.state = to
}
