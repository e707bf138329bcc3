package solicit

import "time"

// sweep removes the operations that have waited too long from their queues, oldest first.
func (w *Window) sweep() {
	for {
		c, due, ok := w.earliest()
		if !ok || w.now < due {
			return
		}
		i := w.waiting[c].head
		w.leave(i)
		w.table.at(i).state = overdue
		w.table.push(&w.overdue, i)
	}
}

// earliest returns the class whose head is the first to have waited too long, and when that is. It
// reports false if no head ever will.
func (w *Window) earliest() (c Class, due time.Duration, ok bool) {
	for class, q := range w.waiting {
		limit := w.cfg.Dispatch[class]
		if q.head == 0 || limit == 0 {
			continue
		}
		if at := w.table.at(q.head).enqueued + limit + 1; !ok || at < due {
			c, due, ok = Class(class), at, true
		}
	}
	return c, due, ok
}

// Expire appends to dst the operations that have waited longer than the dispatch timeout of their
// class, in the order in which their time ended. They have ended, and were never granted.
func (w *Window) Expire(now time.Time, dst []uint64) []uint64 {
	w.at(now)
	w.sweep()
	for w.overdue.head != 0 {
		i := w.overdue.head
		dst = append(dst, w.table.id(i))
		w.queued[w.table.at(i).class]--
		w.stats.Expired++
		w.table.remove(&w.overdue, i)
		w.table.give(i)
	}
	return dst
}

// Deadline returns the time at which Expire has work next. It reports false if there is none: Next
// waits for a call of Release, which has no deadline.
func (w *Window) Deadline() (time.Time, bool) {
	if w.overdue.head != 0 {
		return w.start.Add(w.now), true
	}
	_, due, ok := w.earliest()
	if !ok {
		return time.Time{}, false
	}
	return w.start.Add(due), true
}
