package solicit

import (
	"cmp"
	"slices"
	"time"
)

// epoch is the time at which tests begin.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A world has a virtual time, and a list of future events.
type world struct {
	now    time.Duration
	events []event // the last one is next
	seq    int
}

type event struct {
	at  time.Duration
	seq int // of two events at the same time, the one with the lower number comes first
	do  func()
}

func (w *world) clock() time.Time { return epoch.Add(w.now) }

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	e := event{w.now + d, w.seq, do}
	i, _ := slices.BinarySearchFunc(w.events, e, func(a, b event) int {
		return -cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
	})
	w.events = slices.Insert(w.events, i, e)
}

// run executes the events that are due within d.
func (w *world) run(d time.Duration) {
	end := w.now + d
	for n := len(w.events); n > 0 && w.events[n-1].at <= end; n = len(w.events) {
		e := w.events[n-1]
		w.events = w.events[:n-1]
		w.now = e.at
		e.do()
	}
	w.now = end
}

// A link carries the octets of operations one after the other, half of its delay after they were
// issued, and reports the end half of its delay after that.
type link struct {
	*world
	rate  float64 // octets per second
	delay time.Duration
	queue []transfer
	busy  bool
	used  time.Duration // the time that it was busy
}

type transfer struct {
	n    int64
	done func()
}

func (l *link) send(n int64, done func()) {
	l.after(l.delay/2, func() {
		l.queue = append(l.queue, transfer{n, done})
		if !l.busy {
			l.next()
		}
	})
}

func (l *link) next() {
	l.busy = len(l.queue) > 0
	if !l.busy {
		return
	}
	t := l.queue[0]
	l.queue = l.queue[1:]
	d := l.takes(t.n)
	l.used += d
	l.after(d, func() {
		l.after(l.delay/2, t.done)
		l.next()
	})
}

// takes returns how long n octets occupy the link.
func (l *link) takes(n int64) time.Duration {
	return time.Duration(float64(n) / l.rate * float64(time.Second))
}

// rtt returns the delay of an operation of n octets if there is no other.
func (l *link) rtt(n int64) time.Duration { return l.delay + l.takes(n) }
