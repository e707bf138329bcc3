package rsocket

import (
	"sync"
	"time"
)

// A side is what those that read have in common, or those that write: one goes at a time. The mutex of the Conn guards it.
type side struct {
	cond    sync.Cond   // of the goroutine that is in
	turn    sync.Cond   // of those that wait for it to leave
	busy    bool        // there is one
	expired bool        // the deadline has passed
	timer   *time.Timer // nil: there is none
}

func (s *side) init(mu *sync.Mutex) { s.cond.L, s.turn.L = mu, mu }

// setDeadline sets the deadline; a zero time means none.
func (s *side) setDeadline(t time.Time) {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	s.expired = false
	if t.IsZero() {
		return
	}
	left := time.Until(t)
	if left <= 0 {
		s.expired = true
		s.cond.Broadcast()
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(left, func() {
		s.cond.L.Lock()
		defer s.cond.L.Unlock()
		if s.timer == timer { // it is not of a deadline that was replaced
			s.expired = true
			s.cond.Broadcast()
		}
	})
	s.timer = timer
}

// enter waits until no other goroutine is in. What makes that one leave, a deadline or an end, will
// do so with this one.
func (s *side) enter() {
	for s.busy {
		s.turn.Wait()
	}
	s.busy = true
}

// leave lets another goroutine enter.
func (s *side) leave() {
	s.busy = false
	s.turn.Signal()
}
