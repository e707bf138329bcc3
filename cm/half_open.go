package cm

import "sync"

// halfOpen counts the set-ups in progress: those whose Request has arrived, and that are neither
// ready nor gone.
type halfOpen struct {
	most, perSource int

	mu   sync.Mutex
	all  int
	from map[source]int
}

// enter counts one more set-up. It reports false if a limit is reached.
func (h *halfOpen) enter(s source) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all >= h.most || h.from[s] >= h.perSource {
		return false
	}
	h.all++
	h.from[s]++
	return true
}

func (h *halfOpen) leave(s source) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all--
	if h.from[s]--; h.from[s] == 0 {
		delete(h.from, s)
	}
}

func (h *halfOpen) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all
}
