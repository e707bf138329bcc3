package iwarp

import (
	"sync/atomic"
	"time"
)

// What a kick leaves over for somebody else to send is seldom worth a goroutine. One that
// wakes who waits after each batch, or is woken for each request of the peer, keeps two
// threads busy waking one another, and that takes a fifth of the speed. Two are there anyway:
// who waits for the completions, and the reader that has taken the peer's requests. For
// either of them the send lock is kept, with nobody, until he comes.
//
//	share sent, more to send --+-- a steady waiter is out ------> kept for it --its next post or wait--+
//	                           +-- the reader has kicked -------> kept for it --when it has read ------+--> sends on
//	                           \-- else: a goroutine
//
// A waiter is steady if it has been coming at once, again and again. If it does not come
// the attendant starts a goroutine. So does anybody else who is about to sleep.

const (
	// backTime is how soon a steady waiter comes back, and backTimes how often in a row
	// that must have been so.
	backTime  = 2 * time.Millisecond
	backTimes = 8
	// keptTime is about how long the lock is kept for a waiter that does not come.
	keptTime = 2 * time.Millisecond
)

// For whom the lock is kept.
const (
	notKept int32 = iota
	keptForWaiter
	keptForReader
)

// keeping is the part of a sender that is about those for whom the lock is kept.
type keeping struct {
	// kept is for whom the lock is kept. The holder sets it last of all, and so gives the lock to
	// whoever sets it back, of which the compare-and-swap lets one succeed. Whoever sleeps or
	// leaves, in whose favour it may be kept, looks at it afterwards: one that waits, behind
	// waiting; a reader before it parks (Stop) and behind rearm, stall and refuse.
	kept atomic.Int32
	// since is when it was last kept for a waiter. It is set before kept, and only tells how long
	// the attendant is to wait.
	since atomic.Int64
	waits atomic.Uint64 // for completions of the send queue, that have ended; a guess is made by it
	// waiting counts those who sleep until there is one. A waiter counts itself and then looks at
	// kept, the holder sets kept and then looks at waiting: see keep.
	waiting atomic.Int32

	// Guarded by the lock.
	seen uint64 // waits, when a share was last sent
	at   int64  // when that was
	back int    // how often in a row somebody was back
}

// clockStart is what at and since count from, in nanoseconds.
var clockStart = time.Now()

// take takes the send lock. It reports false if somebody has it, who has been told.
func (s *sender) take() bool { return s.calls.Add(1) == 1 || s.takeUp() }

// takeUp takes the send lock if it is kept.
func (s *sender) takeUp() bool {
	k := s.kept.Load()
	return k != notKept && s.kept.CompareAndSwap(k, notKept)
}

// goOn sends a share if the lock is kept, else it reports false.
func (s *sender) goOn() bool {
	if !s.takeUp() {
		return false
	}
	s.run(paceShare)
	return true
}

// park is called by who is about to sleep until something that he has posted is complete,
// and unpark when he is awake.
func (s *sender) park() {
	s.waiting.Add(1)
	s.dispatch()
}

func (s *sender) unpark() { s.waiting.Add(-1) }

// dispatch has a goroutine send on what would be sent by somebody who sleeps or leaves.
func (s *sender) dispatch() {
	if s.takeUp() {
		s.qp.rnic.tasks.launch(s.task)
	}
}

// pass passes the lock on after a share. It reports false if the caller still has it and
// is to send on.
func (s *sender) pass(p pace) bool {
	switch {
	case p == paceReader:
		s.kept.Store(keptForReader)
	case s.keep():
	case p != paceAll:
		s.qp.rnic.tasks.launch(s.task)
	default:
		return s.handBack()
	}
	return true
}

// keep keeps the lock for a waiter. It reports false if the caller still has it.
func (s *sender) keep() bool {
	now := int64(time.Since(clockStart))
	waits := s.waits.Load()
	switch {
	case now-s.at > int64(backTime):
		s.back = 0
	case waits != s.seen:
		s.back = min(s.back+1, backTimes)
	}
	s.seen, s.at = waits, now
	if s.back < backTimes || s.deserted() {
		return false
	}
	s.since.Store(now)
	s.kept.Store(keptForWaiter) // before looking again: who parks or ends it looks after that
	return s.attended() && !s.deserted() || !s.takeUp()
}

// deserted reports whether no waiter will come: he sleeps on, for there is nothing for him
// yet, or the connection ends.
func (s *sender) deserted() bool {
	qp := s.qp
	return s.waiting.Load() > 0 && !qp.sendCQ.granted(false) || qp.closing.Load() || qp.dead()
}

// attended has the attendant look after a lock that is kept.
func (s *sender) attended() bool {
	x := &s.qp.rx
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.attended(keptTime)
}

// attend is that of the receiver, whose mu is held, for a lock that is kept for a waiter.
func (s *sender) attend() time.Duration {
	if s.kept.Load() != keptForWaiter {
		return 0
	}
	left := keptTime - (time.Since(clockStart) - time.Duration(s.since.Load()))
	if left > 0 {
		return left
	}
	if s.takeUp() {
		s.back = 0
		s.qp.rnic.tasks.launch(s.task)
	}
	return 0
}

// handBack keeps the lock for a reader that stays, and wakes it. It reports false if the
// caller still has the lock.
func (s *sender) handBack() bool {
	x := &s.qp.rx
	if x.heavy.Load() > 0 {
		return false
	}
	x.mu.Lock()
	stays := x.current() == readerStaying
	if stays {
		s.kept.Store(keptForReader)
	}
	x.mu.Unlock()
	if stays {
		s.qp.llp.Wake()
	}
	return stays
}

// A segment of heavyLen makes a reader one that does not send as well: it has enough to do,
// and another processor may help. After lightTimes shorter ones it is forgotten.
const (
	heavyLen   = 4 << 10
	lightTimes = 16
)

// weigh notes that a segment of n octets has come.
func (x *receiver) weigh(n int) {
	switch heavy := x.heavy.Load(); {
	case n >= heavyLen && heavy != lightTimes:
		x.heavy.Store(lightTimes)
	case n < heavyLen && heavy > 0:
		x.heavy.Store(heavy - 1)
	}
}

// pace is how the holder of the right to receive sends.
func (x *receiver) pace() pace {
	if x.wish != nil || x.parks || x.heavy.Load() > 0 {
		return paceShare
	}
	return paceReader
}

// sends reports whether the holder is a reader that has something to send before it parks.
func (x *receiver) sends() bool { return x.wish == nil && x.qp.tx.kept.Load() == keptForReader }
