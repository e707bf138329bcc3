package rma

import "sync"

// A scratch bounds the octets of memory for what is under way.
type scratch struct {
	mu    sync.Mutex
	limit int
	inUse int
}

func newScratch(limit int) *scratch { return &scratch{limit: limit} }

// take takes n octets. It reports false, and takes none, if fewer are left.
func (s *scratch) take(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inUse+n > s.limit {
		return false
	}
	s.inUse += n
	return true
}

func (s *scratch) give(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inUse -= n
}

func (s *scratch) used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inUse
}
