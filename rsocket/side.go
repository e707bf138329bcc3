package rsocket

import (
	"sync"
	"time"
)

// A side is what those that read have in common, or those that write: one goroutine goes at a time. The mutex of the Conn guards it.
type side struct {
	conn    *Conn
	cond    sync.Cond   // of the goroutine that is in
	turn    sync.Cond   // of those that wait for it to leave
	busy    bool        // there is one
	waits   bool        // it waits for cond, or is on its way from there
	expired bool        // the deadline has passed
	timer   *time.Timer // nil: there is none
}

func (s *side) init(c *Conn) { s.conn, s.cond.L, s.turn.L = c, &c.mu, &c.mu }

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
		s.expire()
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(left, func() {
		s.conn.mu.Lock()
		defer s.conn.mu.Unlock()
		if s.timer == timer { // it is not of a deadline that was replaced
			s.expire()
		}
	})
	s.timer = timer
}

func (s *side) expire() {
	s.expired = true
	s.conn.rouse(s)
}

// enter waits until no other goroutine is in. What makes that one leave, a deadline or an end, will
// do so with this one.
func (s *side) enter() {
	for s.busy {
		s.turn.Wait()
	}
	s.busy = true
}

// leave lets another goroutine enter, and another one take completions if there is a need for that.
func (s *side) leave() {
	s.busy = false
	s.turn.Signal()
	s.conn.passOn()
}
