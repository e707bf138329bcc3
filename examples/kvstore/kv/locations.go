package kv

import "sync"

// locations remembers where values were at one replica, for a limited number of keys. A Get that begins
// there takes one read, unless the value has changed.
type locations struct {
	most int

	mu sync.Mutex
	at map[string]Entry
}

func newLocations(most int) *locations { return &locations{most: most, at: make(map[string]Entry)} }

// begin begins a Lookup where the value was, or with the index.
func (s *locations) begin(l *Lookup, shape Shape, key []byte) (off uint64, n int) {
	if s.most == 0 {
		return l.Begin(shape, key)
	}
	s.mu.Lock()
	e, ok := s.at[string(key)]
	s.mu.Unlock()
	if !ok {
		return l.Begin(shape, key)
	}
	return l.BeginAt(shape, key, e)
}

// ended records how a Lookup has ended.
func (s *locations) ended(l *Lookup, v Verdict) {
	if s.most == 0 || v == Found && l.located {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v != Found {
		delete(s.at, string(l.key))
		return
	}
	if len(s.at) >= s.most {
		for another := range s.at { // to make room
			delete(s.at, another)
			break
		}
	}
	s.at[string(l.key)] = l.Entry()
}
