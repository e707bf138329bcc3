package soliciting

import (
	"time"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/solicit"
)

// A standing is the state of the next Read of a User. At most one Read of a User waits, because Reads
// start in the order of posting:
//
//	standing   event                 next standing
//	idle       ask, room             idle; the answer is Go
//	           ask, no room          waiting; the answer is Wait
//	           ask, a full queue     idle; the answer is Skip
//	waiting    ask                   waiting; the answer is Wait
//	           room                  granted, kick
//	           it waits too long     expired, kick
//	granted    ask                   idle; the answer is Go
//	expired    ask                   idle; the answer is Skip
//	any        leave                 gone; a grant goes back
//	gone       ask                   gone; the answer is Wait
type standing uint8

const (
	idle    standing = iota
	waiting          // the entry is in the queue of the window
	granted          // the Read has its grant, and the stream has not asked since
	expired          // the Read has waited too long, and the stream has not asked since
	gone             // the queue pair is ending: no Read starts any more
)

// A place is the part of a User that turns modifies.
type place struct {
	at    standing
	entry uint64 // of the window, if waiting or granted
	since time.Time
	waits Waits

	// Both make the stream ask again: post at once, start in a new goroutine. The fields do not
	// change.
	post, start func()
}

// An ended is a Read whose grant is to be returned.
type ended struct {
	entry   uint64
	outcome solicit.Outcome
}

// Waits counts the Reads of a queue pair that have waited for the window.
type Waits struct {
	Count uint64
	Time  time.Duration // of all of them
}

// turns holds the places that wait for the window. It is pure: the user of turns holds one lock around
// each method. After each method, the user kicks the places whose next answer has changed.
type turns struct {
	window  *solicit.Window
	waiting map[uint64]*place // by entry
	kicks   []*place          // to be kicked, and removed, by the user
	overdue []uint64          // memory of expire
}

// ask decides about the next Read of p, of n octets. With Go it returns the grant, which the caller
// passes to release later.
func (t *turns) ask(now time.Time, p *place, c solicit.Class, n uint64) (rdmap.Admission, uint64) {
	switch p.at {
	case granted:
		p.at = idle
		return rdmap.Go, p.entry
	case expired:
		p.at = idle
		return rdmap.Skip, 0
	case waiting, gone:
		return rdmap.Wait, 0
	case idle:
	}
	entry, err := t.window.Enqueue(now, c, int64(n))
	if err != nil {
		return rdmap.Skip, 0
	}
	if t.grant(now, entry) {
		return rdmap.Go, entry
	}
	p.at, p.entry, p.since = waiting, entry, now
	p.waits.Count++
	t.waiting[entry] = p
	return rdmap.Wait, 0
}

// grant grants the entries that fit now. It reports whether that includes last, the entry that was just
// enqueued, which is in no place yet.
func (t *turns) grant(now time.Time, last uint64) (got bool) {
	for last != 0 && !got || len(t.waiting) > 0 {
		g, ok := t.window.Next(now)
		switch {
		case !ok:
			return got
		case g.ID == last:
			got = true
		default:
			t.served(now, g.ID, granted)
		}
	}
	return got
}

// served ends the wait of the place with this entry.
func (t *turns) served(now time.Time, entry uint64, at standing) {
	p := t.waiting[entry]
	delete(t.waiting, entry)
	p.at = at
	p.waits.Time += now.Sub(p.since)
	t.kicks = append(t.kicks, p)
}

// release returns grants, and grants the entries that fit then.
func (t *turns) release(now time.Time, back []ended) {
	for i := range back {
		t.window.Release(now, back[i].entry, back[i].outcome)
	}
	t.grant(now, 0)
}

// leave removes p from the queue, and grants the entries that fit then.
func (t *turns) leave(now time.Time, p *place) {
	switch p.at {
	case waiting:
		delete(t.waiting, p.entry)
		t.window.Cancel(now, p.entry)
		p.waits.Time += now.Sub(p.since)
	case granted:
		t.window.Release(now, p.entry, solicit.Failed)
	case idle, expired, gone:
	}
	p.at = gone
	t.grant(now, 0)
}

// expire ends the waits that last too long, and grants the entries that fit then.
func (t *turns) expire(now time.Time) {
	t.overdue = t.window.Expire(now, t.overdue[:0])
	for _, entry := range t.overdue {
		t.served(now, entry, expired)
	}
	t.grant(now, 0)
}
