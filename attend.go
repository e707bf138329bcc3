package iwarp

import (
	"sync"
	"time"
)

// An attendant looks, now and then, after the receivers of an RNIC whose right to
// receive, or whose send lock, is kept for a waiter, or whose reader stays, so that none
// of that lasts when nothing happens any more. It needs no goroutine: it is called by the poller's alarm,
// which is set only while there is somebody to look after.
type attendant struct {
	rnic *RNIC
	ring func() // made once

	mu   sync.Mutex
	list []*receiver
	next []*receiver   // empty: the list while look goes through the other
	due  time.Duration // after which the alarm was set; 0: it is not set
}

// attended puts x on the attendant's list, to be looked after within d. It reports
// false if that is not possible. x.mu is held.
func (x *receiver) attended(d time.Duration) bool {
	a := &x.qp.rnic.attendant
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.set(d) {
		return false
	}
	if !x.listed {
		x.listed = true
		a.list = append(a.list, x)
	}
	return true
}

// set sees to it that the alarm rings within d or so. mu is held.
func (a *attendant) set(d time.Duration) bool {
	if a.due != 0 && a.due <= d {
		return true
	}
	if a.rnic.poller.SetAlarm(d, a.ring) != nil {
		return false
	}
	a.due = d
	return true
}

// look goes through the list once.
func (a *attendant) look() {
	a.mu.Lock()
	list := a.list
	a.list, a.next, a.due = a.next, nil, 0
	a.mu.Unlock()

	var next time.Duration // until those that are left must be looked at again
	left := list[:0]
	now := time.Now()
	for _, x := range list {
		again := x.attend(now)
		if again == 0 {
			continue
		}
		left = append(left, x)
		next = sooner(next, again)
	}

	clear(list[len(left):])

	a.mu.Lock()
	defer a.mu.Unlock()
	came := a.list // meanwhile
	a.list = append(left, came...)
	clear(came)
	a.next = came[:0]
	if next != 0 {
		a.set(next)
	}
}

// attend looks after x: it tells after what time to do so again, 0 if that is not
// needed any more.
func (x *receiver) attend(now time.Time) time.Duration {
	x.mu.Lock()
	sending := x.qp.tx.attend()
	switch {
	case x.current() == readerKept && now.Sub(x.left) < keepTime:
		left := keepTime - now.Sub(x.left)
		x.mu.Unlock()
		return sooner(left, sending)
	case x.current() == readerStaying && x.isActive(now):
		x.mu.Unlock()
		return sooner(stayTime/2, sending)
	}
	x.listed = sending != 0
	switch x.current() {
	case readerKept: // nobody has come back
		x.steady = 0
		x.giveUp()
	case readerStaying:
		x.become(readerRecalled)
		x.mu.Unlock()
		x.qp.llp.Wake()
	default:
		x.mu.Unlock()
	}
	return sending
}

// sooner is the shorter of two times, of which 0 means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// isActive reports whether something has come not long ago. mu is held.
func (x *receiver) isActive(now time.Time) bool {
	if x.active.Swap(false) {
		x.since = now
	}
	return now.Sub(x.since) < stayTime
}
