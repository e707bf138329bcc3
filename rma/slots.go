package rma

import "sync"

// Slots is a budget of slots, which the Portals of a process, or of a tenant, draw from: so many
// operations there can be at once. See ClientConfig.Slots.
type Slots struct {
	mu   sync.Mutex
	free int
}

// NewSlots returns a budget of n slots.
func NewSlots(n int) *Slots { return &Slots{free: n} }

// take takes n slots. A nil budget has as many as one wants.
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
