package rsocket

import (
	"sync"
	"time"
)

// A side is shared by the goroutines that read, or by those that write; one of them is inside at a time. The mutex of the Conn guards it.
type side struct {
	conn    *Conn
	cond    sync.Cond   // of the goroutine that is inside
	turn    sync.Cond   // of the goroutines that wait for it to leave
	busy    bool        // a goroutine is inside
	waits   bool        // it waits for cond, or has just been woken
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
		if s.timer == timer { // the deadline was not replaced
			s.expire()
		}
	})
	s.timer = timer
}

func (s *side) expire() {
	s.expired = true
	s.conn.rouse(s)
}

// enter waits until no other goroutine is inside, or until refused returns an error. The goroutine inside may be in a
// reader or a writer of the program, which neither a deadline nor the end of the connection interrupts.
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

// leave lets another goroutine enter, and hands the taking of completions on if that is needed.
func (s *side) leave() {
	s.busy = false
	s.turn.Signal()
	s.conn.passOn()
}
