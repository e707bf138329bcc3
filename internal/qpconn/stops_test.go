package qpconn

import "sync"

// stops are the places at which a call waits until the test lets it go on.
type stops struct {
	mu sync.Mutex
	at map[string]*stop
}

type stop struct {
	reached bool
	resume  chan struct{}
}

// set makes the next call that comes to the place wait there for resume.
func (s *stops) set(place string) (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = make(map[string]*stop)
	}
	here := &stop{resume: make(chan struct{})}
	s.at[place] = here
	return func() { close(here.resume) }
}

// reached reports whether a call waits at the place, or has waited there.
func (s *stops) reached(place string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[place] != nil && s.at[place].reached
}

// pass is what a call does at a place.
func (s *stops) pass(place string) {
	s.mu.Lock()
	here := s.at[place]
	if here == nil || here.reached {
		s.mu.Unlock()
		return
	}
	here.reached = true
	s.mu.Unlock()
	<-here.resume
}
