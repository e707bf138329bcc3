//go:build linux && !purego

package transport

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
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

// waiting is how a Read, or a Write, waits for its socket: in the berth if it is alone,
// else until the Poller tells it, which takes no descriptor. One that waits briefly again
// and again does so on a perch, if there is one left, since that is quicker. It belongs to
// one goroutine at a time, but for wake and tell.
type waiting struct {
	sock  *socket
	watch *watch
	dir   direction
	// try attempts what is waited for: asleep, in the berth, or else without waiting.
	// False: there is nothing yet.
	try func(asleep bool) bool

	onPerch func(fd uintptr) bool // tryOnPerch, made once: a closure per call would be allocated
	stands  bool                  // the perch is told of the socket
	idle    int                   // attempts in a row that were in vain
	brief   int                   // waits in a row that the Poller has ended soon
	err     error                 // of tryOnPerch

	mu    sync.Mutex
	perch *perch
	at    place
	told  chan struct{} // has one element if tell was called; nil: there has been no need
	woken bool          // wake was called, and no wait has reported it yet
	poked bool          // the perch has a deadline in the past
}

// A place is where a goroutine waits.
type place uint8

const (
	nowhere  place = iota // it does not
	inBerth               // with its thread, in the system call
	onPerch               // in the runtime's poller
	inPoller              // on a channel
)

func (w *waiting) init(s *socket, watch *watch, dir direction, try func(asleep bool) bool) {
	w.sock, w.watch, w.dir, w.try = s, watch, dir, try
	w.onPerch = w.tryOnPerch
}

// errAlone is why a perch is left for the berth.
var errAlone = errors.New("there is nobody else")

// wait attempts until it is not in vain. ErrWoken: wake was called.
func (w *waiting) wait() error {
	w.idle = 0
	for {
		if w.stands || !lone.enter() {
			if err := w.outside(); err != errAlone { //nolint:errorlint // it is ours, and not wrapped
				return err
			}
			w.quiet()
		}
		if done, err := w.sleep(); done || err != nil {
			return err
		}
	}
}

// sleep makes one attempt in the berth, which the caller has.
func (w *waiting) sleep() (done bool, err error) {
	defer lone.leave()
	if !w.begin(inBerth) {
		return false, ErrWoken
	}
	done = w.try(true)
	return done, w.end(done, nil)
}

// outside attempts until it is not in vain, not in the berth.
func (w *waiting) outside() error {
	if w.stands || w.isBusy() && w.stand() {
		w.err = nil
		began := now()
		err := w.perch.raw.Read(w.onPerch)
		if err == nil {
			err = w.err
		}
		err = w.end(err == nil, err)
		if now()-began > int64(long) && w.watch.poller != nil {
			w.brief = 0
			w.release() // for one who is busy
		}
		return err
	}
	for !w.try(false) {
		if lone.enter() {
			return errAlone
		}
		if err := w.untilTold(); err != nil {
			return err
		}
	}
	return nil
}

const (
	// briefly is how soon the Poller has to end a wait, and busyTimes how often in a row
	// it must have done so, for one who waits to be busy.
	briefly   = time.Millisecond
	busyTimes = 8
	// long is a wait after which one is not busy any more.
	long = 10 * briefly
)

// isBusy reports whether it waits briefly again and again, or has nobody to tell it.
func (w *waiting) isBusy() bool { return w.brief >= busyTimes || w.watch.poller == nil }

// untilTold waits once until the Poller tells that there is something to try; if it
// cannot, for a moment.
func (w *waiting) untilTold() error {
	if w.told == nil {
		w.mu.Lock()
		w.told = make(chan struct{}, 1)
		w.mu.Unlock()
	}
	if !w.begin(inPoller) {
		return ErrWoken
	}
	began := now()
	if w.watch.await(w) {
		<-w.told
		w.watch.forget(w)
	} else {
		doze(w.sock, w.dir)
	}
	if now()-began < int64(briefly) {
		w.brief++
	} else {
		w.brief = 0
	}
	return w.end(false, nil)
}

// tell ends a wait that the Poller has been asked to end.
func (w *waiting) tell() {
	select {
	case w.told <- struct{}{}:
	default:
	}
}

// tryOnPerch makes one attempt; false parks, after which it is called again.
func (w *waiting) tryOnPerch(uintptr) bool {
	switch {
	case w.try(false):
	case w.at != onPerch && lone.enter():
		w.err = errAlone
	case !w.begin(onPerch):
		w.err = ErrWoken
	default:
		return false
	}
	return true
}

// stand sees to a perch that is told of the socket.
func (w *waiting) stand() bool {
	if w.stands {
		return true
	}
	op := unix.EPOLL_CTL_MOD
	if w.perch == nil {
		p := perches.take(w.watch.poller != nil)
		if p == nil {
			w.brief = 0 // not again at once
			return false
		}
		w.mu.Lock()
		w.perch = p
		w.mu.Unlock()
		op = unix.EPOLL_CTL_ADD
	}
	w.stands = w.perch.tell(w.sock, op, w.dir, true)
	return w.stands
}

// quiet has the perch told of nothing, because nobody waits who would want to know.
func (w *waiting) quiet() {
	if w.stands {
		w.stands = false
		w.perch.tell(w.sock, unix.EPOLL_CTL_MOD, w.dir, false)
	}
}

// release gives the perch back.
func (w *waiting) release() {
	if w.perch == nil {
		return
	}
	w.mu.Lock()
	p := w.perch
	w.perch = nil
	w.mu.Unlock()
	w.stands = false
	p.tell(w.sock, unix.EPOLL_CTL_DEL, w.dir, false)
	perches.give(p)
}

// Where a lot comes, or somebody asks again and again instead of waiting, to be told of it
// would take the processor from who has it already.
const (
	aLot      = 32 << 10
	idleTries = 4
)

// brought notes what an attempt without a wait has brought.
func (w *waiting) brought(n int) {
	if n > 0 {
		w.idle = 0
	} else {
		w.idle++
	}
	if n >= aLot || w.idle >= idleTries {
		w.quiet()
	}
}

// begin announces the wait. False: it must not begin, because wake came first.
func (w *waiting) begin(at place) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.woken && !w.poked {
		w.woken = false
		return false
	}
	if at != inBerth && w.at == nowhere {
		lone.perched.Add(1)
	}
	w.at = at
	return true
}

// end ends what begin began. It takes err, the outcome of the wait, and returns it, or
// ErrWoken. One that is done although it was woken leaves the wake to the next.
func (w *waiting) end(done bool, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.at
	w.at = nowhere
	if at != nowhere && at != inBerth {
		lone.perched.Add(-1)
	}
	late := false
	if w.poked {
		w.poked = false
		_ = w.perch.file.SetReadDeadline(time.Time{}) // of a file that nobody closes
		late = errors.Is(err, os.ErrDeadlineExceeded)
	}
	if late || (at == inBerth || at == inPoller) && w.woken && !done {
		w.woken = false
		return ErrWoken
	}
	return err
}

// wake ends the wait, or else the next one before it begins.
func (w *waiting) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.woken = true
	switch w.at {
	case inBerth:
		lone.call()
	case inPoller:
		w.tell()
	case onPerch:
		if !w.poked {
			_ = w.perch.file.SetReadDeadline(longAgo) // of a file that nobody closes
			w.poked = true
		}
	case nowhere:
	}
}
