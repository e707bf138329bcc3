package rma

import "sync"

// Slots is a budget of slots for the Portals of a process or a tenant. It limits the number of their
// simultaneous operations. See ClientConfig.Slots.
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

// give returns n slots.
func (s *Slots) give(n int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
}

// Free returns the number of slots that are left.
func (s *Slots) Free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}
