package rma

import "sync"

// Slots is a budget of slots for the Portals of a process, or of a tenant: together they have no more
// operations at once. See ClientConfig.Slots.
type Slots struct {
	mu   sync.Mutex
	free int
}

// NewSlots returns a budget of n slots.
func NewSlots(n int) *Slots { return &Slots{free: n} }

// take takes n slots, and reports false if fewer are left. A nil budget has no limit.
func (s *Slots) take(n int) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.free {
		return false
	}
	s.free -= n
	return true
}

// give gives n slots back.
func (s *Slots) give(n int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
}

// Free is how many slots are left.
func (s *Slots) Free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}
