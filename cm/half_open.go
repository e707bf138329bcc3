package cm

import "sync"

// halfOpen counts the set-ups under way: those whose Request has come, and that are neither
// ready nor gone.
type halfOpen struct {
	most, perSource int

	mu   sync.Mutex
	all  int
	from map[source]int
}

// enter counts one more, or tells that there are as many as may be.
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
