package main

import "sync"

// slots are the queue pairs that jobs may use at a time.
type slots struct {
	mu   sync.Mutex
	more sync.Cond
	free int
}

func newSlots(n int) *slots {
	s := &slots{free: n}
	s.more.L = &s.mu
	return s
}

// take waits until n are free, and takes them.
func (s *slots) take(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.free < n {
		s.more.Wait()
	}
	s.free -= n
}

func (s *slots) give(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
	s.more.Broadcast()
}
