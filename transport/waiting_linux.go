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
// else on a perch. It belongs to one goroutine at a time, but for wake.
type waiting struct {
	sock *socket
	dir  direction
	// try attempts what is waited for: asleep, in the berth, or else without waiting.
	// False: there is nothing yet.
	try func(asleep bool) bool

	onPerch func(fd uintptr) bool // tryOnPerch, made once: a closure per call would be allocated
	stands  bool                  // the perch is told of the socket
	idle    int                   // attempts in a row that were in vain
	err     error                 // of tryOnPerch

	mu     sync.Mutex
	perch  *perch
	parked bool
	berth  *berth // where parked; nil: on the perch
	woken  bool   // wake was called, and no wait has reported it yet
	poked  bool   // the perch has a deadline in the past
}

func (w *waiting) init(s *socket, dir direction, try func(asleep bool) bool) {
	w.sock, w.dir, w.try = s, dir, try
	w.onPerch = w.tryOnPerch
}

// errAlone is why a perch is left for the berth.
var errAlone = errors.New("there is nobody else")

// wait attempts until it is not in vain. ErrWoken: wake was called.
func (w *waiting) wait() error {
	w.idle = 0
	for {
		if w.stands || !lone.enter() {
			if err := w.perchAndTry(); err != errAlone { //nolint:errorlint // it is ours, and not wrapped
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
	if !w.begin(&lone) {
		return false, ErrWoken
	}
	done = w.try(true)
	return done, w.end(done, nil)
}

// perchAndTry attempts on a perch, or without one if there is none to be had.
func (w *waiting) perchAndTry() error {
	if !w.stand() {
		for !w.try(false) {
			if !w.begin(nil) {
				return ErrWoken
			}
			doze(w.sock, w.dir)
			if err := w.end(false, nil); err != nil {
				return err
			}
		}
		return nil
	}
	w.err = nil
	err := w.perch.raw.Read(w.onPerch)
	if err == nil {
		err = w.err
	}
	return w.end(err == nil, err)
}

// tryOnPerch makes one attempt; false parks, after which it is called again.
func (w *waiting) tryOnPerch(uintptr) bool {
	switch {
	case w.try(false):
	case !w.parked && lone.enter():
		w.err = errAlone
	case !w.begin(nil):
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
		p, err := newPerch()
		if err != nil {
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
	perches.Put(p)
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
func (w *waiting) begin(b *berth) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.woken && !w.poked {
		w.woken = false
		return false
	}
	if b == nil && !w.parked {
		lone.perched.Add(1)
	}
	w.parked, w.berth = true, b
	return true
}

// end ends what begin began. It takes err, the outcome of the wait, and returns it, or
// ErrWoken. One that is done although it was woken leaves the wake to the next.
func (w *waiting) end(done bool, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	slept := w.berth != nil
	if w.parked && !slept {
		lone.perched.Add(-1)
	}
	w.parked, w.berth = false, nil
	late := false
	if w.poked {
		w.poked = false
		_ = w.perch.file.SetReadDeadline(time.Time{}) // of a file that nobody closes
		late = errors.Is(err, os.ErrDeadlineExceeded)
	}
	if late || slept && w.woken && !done {
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
	switch {
	case !w.parked:
	case w.berth != nil:
		w.berth.call()
	case w.perch != nil && !w.poked:
		_ = w.perch.file.SetReadDeadline(longAgo) // of a file that nobody closes
		w.poked = true
	}
}
