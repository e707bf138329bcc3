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

// enter waits until no other goroutine is in, or until there is a reason not to wait any more: the one that is in may be in a
// reader or a writer of the program, which ends neither by a deadline nor with the connection.
func (s *side) enter(refused func() error) error {
	for s.busy {
		if err := refused(); err != nil {
			return err
		}
		s.turn.Wait()
	}
	s.busy = true
	return nil
}

// leave lets another goroutine enter, and another one take completions if there is a need for that.
func (s *side) leave() {
	s.busy = false
	s.turn.Signal()
	s.conn.passOn()
}
