//go:build linux && !purego

package transport

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// A direction is one half of a connection.
type direction uint8

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

func (d direction) pollEvents() int16 { return int16(d.epollEvents()) } // the numbers are the same

// waiting implements the waits of the reading half, or of the writing half, of a Stream for its
// socket. Only one goroutine at a time may wait; wake, close and tell may be called by any.
type waiting struct {
	sock  *socket
	watch *watch
	try   func() bool // attempts the system call; false: it would have to wait
	dir   direction

	// These are used only by the goroutine that reads, or writes.
	reports bool                  // busy reports events of the socket
	brief   int                   // number of consecutive waits that were brief
	vain    int                   // number of consecutive attempts without a result, since the last wait
	told    chan struct{}         // has one element if tell was called; nil until it is needed
	park    func(fd uintptr) bool // tryInSet; nil until it is needed, and kept, because a closure per wait would be allocated

	// mu guards what follows. While state is inSet or inKernel only end changes busy and event.
	mu    lockorder.Mutex[lockorder.Leaf]
	state waitState
	busy  *epollSet // not nil: the set in which the goroutine waits
	event *eventFD  // not nil: the eventfd that ends a wait in the kernel
}

// A waitState says whether and where the goroutine waits, and whether the wait was ended. The
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
	woken                     // it does not wait, and the next wait returns ErrWoken
	inPoller                  // it waits on a channel for the Poller; this needs no descriptor
	inSet                     // it waits in the runtime's poller, with its own epoll set; this is faster
	inKernel                  // it waits in ppoll(2), together with its thread
	called                    // it waits, and wake has ended the wait
	closed                    // the connection is closed
)

func (w *waiting) init(s *socket, watch *watch, dir direction, try func() bool) {
	w.sock, w.watch, w.dir, w.try = s, watch, dir, try
}

const (
	// A wait shorter than briefly is brief. After busyTimes consecutive brief waits a reader
	// gets its own epoll set, which it gives up after a wait longer than long.
	briefly   = time.Millisecond
	busyTimes = 8
	long      = 10 * briefly
	// maxBusy is how many readers of one Poller may have their own epoll set at a time.
	maxBusy = 64
	// While an epoll set reports events, the runtime wakes a thread for each packet. If much
	// data arrives, or the caller polls, that takes the processor from a goroutine that is
	// running already. So after an attempt that has moved aLot octets, or vainTimes attempts
	// without a result, the set reports nothing until the next wait.
	aLot      = 32 << 10
	vainTimes = 4
)

// wait waits until try succeeds. It returns ErrWoken if wake was called.
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

// once waits until try may succeed. done reports that try was called and has succeeded.
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
		if w.park == nil {
			w.park = w.tryInSet
		}
		done = w.busy.raw.Read(w.park) == nil // otherwise wake or close was called
	case inKernel:
		w.sleep(w.event.fd, nil)
	default: // closed
	}
	return done, w.end(done, time.Duration(now()-began))
}

// untilTold waits until the Poller calls tell, or for a millisecond if the Poller cannot watch
// the socket.
func (w *waiting) untilTold() {
	if !w.watch.await(w) {
		limit := unix.NsecToTimespec(int64(time.Millisecond))
		w.sleep(-1, &limit)
		return
	}
	<-w.told
	w.watch.forget(w)
}

// sleep blocks the thread until the socket is ready, the descriptor event, if not -1, is
// readable, or the limit has passed. The scheduler is told of the system call.
func (w *waiting) sleep(event int, limit *unix.Timespec) {
	if !w.sock.hold() {
		return
	}
	defer w.sock.drop()
	fds := []unix.PollFd{{Fd: int32(w.sock.fd), Events: w.dir.pollEvents()}, {Fd: int32(event), Events: unix.POLLIN}}
	_, _ = unix.Ppoll(fds, limit, nil) // fails only if a signal interrupts it
}

// tell ends a wait for the Poller.
func (w *waiting) tell() {
	select {
	case w.told <- struct{}{}:
	default:
	}
}

// tryInSet is called by the runtime. If it returns false the runtime parks the goroutine, and
// calls it again when the epoll set has reported an event.
func (w *waiting) tryInSet(uintptr) bool { return w.try() }

// report makes the epoll set report the given events, or none if 0.
func (w *waiting) report(events uint32) {
	if w.reports == (events != 0) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = events != 0
	if w.busy != nil {
		w.busy.control(unix.EPOLL_CTL_MOD, w.sock, events) // fails only for a closed socket
	}
}

// attempted records that an attempt has moved n octets.
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

// begin chooses where to wait, and enters that state. It returns closed if the connection is
// closed, so that the caller does not wait.
func (w *waiting) begin(how Wait) (waitState, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.state == woken:
		w.state = idle
		return idle, ErrWoken
	case w.state == closed:
	case how == Block && w.takeEvent():
		w.state = inKernel
	case how != Block && w.takeSet():
		w.state = inSet
	default:
		if w.told == nil {
			w.told = make(chan struct{}, 1)
		}
		w.state = inPoller
	}
	return w.state, nil
}

// takeEvent gives the goroutine an eventfd to wait with, in place of the epoll set, unless there is
// one already. It reports false if that fails. mu must be held.
func (w *waiting) takeEvent() bool {
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

// takeSet closes the eventfd, and reports whether there is an epoll set to wait with. It opens one
// for a reader whose last waits were brief. A writer gets none, because it would not be needed for
// long enough. mu must be held.
func (w *waiting) takeSet() bool {
	w.dropEvent()
	if w.busy != nil || w.dir == outward || w.brief < busyTimes {
		return w.busy != nil
	}
	w.brief = 0 // if this fails, do not try again at once
	p := w.watch.poller
	if !p.nests {
		return false
	}
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

// end leaves the state that begin has entered, after a wait that took the given time.
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
	case w.state == closed: // the next attempt returns the error
	case w.state == called && done:
		w.state = woken // the next wait returns ErrWoken
	case w.state == called:
		w.state = idle
		return ErrWoken
	default:
		w.state = idle
	}
	return nil
}

// resume reverts the interrupt of leave. mu must be held.
func (w *waiting) resume() {
	if w.busy != nil {
		w.busy.resume()
	}
	if w.event != nil {
		w.event.resume()
	}
}

// drop closes the epoll set and the eventfd. mu must be held.
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
		_ = w.busy.close() // never fails for an epoll set
		w.busy = nil
		w.watch.poller.busy.Add(-1)
	}
}

// release closes the epoll set and the eventfd. It is called when no goroutine waits, before the
// connection is armed.
func (w *waiting) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.brief, w.reports = 0, false
	w.drop()
}

// wake ends the wait, or the next one if no goroutine waits.
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

// close ends the wait, and all later ones. The socket was closed before.
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

// leave ends the wait and enters the state to. mu must be held.
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
