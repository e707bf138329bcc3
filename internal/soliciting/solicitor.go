package soliciting

import (
	"cmp"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/solicit"
)

// mostUsers is how many queue pairs can wait, with one Read each.
const mostUsers = 1 << 20

// A Solicitor is a window that queue pairs share.
type Solicitor struct {
	began time.Time
	most  uint64 // octets of one Read
	err   error  // of the configuration

	mu     lockorder.Mutex[lockorder.Solicitor]
	turns  turns
	users  int
	closed bool
	timer  *time.Timer // nil: it was never set
	due    time.Time   // when the timer calls expire; zero: it is not set
	timed  bool        // there is a dispatch timeout
}

// New returns a Solicitor. If cfg is not valid, Join returns the error.
func New(cfg solicit.Config) *Solicitor {
	cfg.MaxQueue = cmp.Or(cfg.MaxQueue, mostUsers)
	s := &Solicitor{began: time.Now(), err: cfg.Check(), timed: cfg.Dispatch != [2]time.Duration{}}
	w := solicit.New(cfg, s.began)
	s.most = uint64(w.Max())
	s.turns = turns{window: w, waiting: make(map[uint64]*place)}
	return s
}

// now returns the time, and costs less than time.Now.
func (s *Solicitor) now() time.Time { return s.began.Add(time.Since(s.began)) }

// Stats returns the counters of the window.
func (s *Solicitor) Stats() solicit.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turns.window.Stats()
}

// Close stops the timer. It fails while there are users.
func (s *Solicitor) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users > 0 {
		return fmt.Errorf("iwarp: close Solicitor: still in use by %d queue pairs", s.users)
	}
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	return nil
}

// kick makes the streams whose answer has changed ask again. If next is not nil, kick stores one of
// them there; the caller makes that one ask when it holds no lock. mu is held.
func (s *Solicitor) kick(next **place) {
	kicks := s.turns.kicks
	for i, p := range kicks {
		if next != nil && *next == nil {
			*next = p
		} else {
			p.start()
		}
		kicks[i] = nil
	}
	s.turns.kicks = kicks[:0]
}

// setTimer makes the timer call expire when the next wait lasts too long. mu is held.
func (s *Solicitor) setTimer(now time.Time) {
	if !s.timed {
		return
	}
	at, ok := s.turns.window.Deadline()
	if !ok || !s.due.IsZero() && !at.Before(s.due) {
		return // an early call does no harm
	}
	s.due = at
	if s.timer == nil {
		s.timer = time.AfterFunc(at.Sub(now), s.expire)
	} else {
		s.timer.Reset(at.Sub(now))
	}
}

func (s *Solicitor) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.due = time.Time{}
	s.turns.expire(now)
	s.kick(nil)
	s.setTimer(now)
}
