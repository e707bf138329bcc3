package backend

import (
	"slices"
	"sync"
)

// A rangeLock excludes all other operations from octets that one operation writes. Operations on
// the same octets acquire the lock in the order of their requests, so that none waits forever.
type rangeLock struct {
	mu      sync.Mutex
	changed sync.Cond // an operation has ended; L is &mu
	last    uint64    // id of the latest request
	asked   []held    // requests, in the order of their ids
	waiting int       // how many of asked wait
}

// held is one operation that holds the lock, or waits for it.
type held struct {
	id       uint64
	off, end int64
	writes   bool
}

func (h *held) excludes(o *held) bool {
	return (h.writes || o.writes) && h.off < o.end && o.off < h.end
}

// lock waits until all earlier operations have ended that exclude this one on n octets at off.
func (l *rangeLock) lock(off, n int64, writes bool) (id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	own := held{l.last, off, off + n, writes}
	l.asked = append(l.asked, own)
	for l.blocked(&own) {
		l.waiting++
		l.changed.Wait()
		l.waiting--
	}
	return own.id
}

// blocked reports whether an earlier request excludes own. Preconditions: l.mu is held.
func (l *rangeLock) blocked(own *held) bool {
	for i := range l.asked {
		h := &l.asked[i]
		if h.id == own.id {
			return false
		}
		if h.excludes(own) {
			return true
		}
	}
	return false
}

// unlock ends the operation.
func (l *rangeLock) unlock(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.asked, func(h held) bool { return h.id == id })
	l.asked = slices.Delete(l.asked, i, i+1)
	if l.waiting > 0 {
		l.changed.Broadcast()
	}
}
