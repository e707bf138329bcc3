package target

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// Buffers have lengths that are powers of two: classes.
const (
	leastBits = 12                 // 4 KiB
	classes   = 23 - leastBits + 1 // up to 8 MiB, the largest MDTS
	retained  = 2 << 20            // maximum octets of idle buffers that a queue keeps registered
	leastSize = 1 << leastBits     // octets
)

func classOf(n int) int { return max(bits.Len(uint(n-1))-leastBits, 0) }

// sizeOf returns the length of a buffer for n octets.
func sizeOf(n int) int { return leastSize << classOf(n) }

// memory holds the buffers that are not in use: registered ones, which queues keep ready, and free memory for all queues.
type memory struct {
	mostKept int64
	kept     atomic.Int64 // octets that are registered

	mu       sync.Mutex
	free     [classes][][]byte
	size     int // octets of free
	mostFree int
}

// limit sets how many octets may be kept: three quarters of them registered.
func (m *memory) limit(n int) {
	m.mostFree = max(n, 0) / 4
	m.mostKept = int64(max(n, 0) - m.mostFree)
}

// keep accounts for a buffer that a queue keeps. false: it may not.
func (m *memory) keep(n int) bool {
	if m.kept.Add(int64(n)) > m.mostKept {
		m.leave(n)
		return false
	}
	return true
}

// leave accounts for a buffer that is no longer kept.
func (m *memory) leave(n int) { m.kept.Add(-int64(n)) }

// idle returns how many octets are kept.
func (m *memory) idle() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept.Load() + int64(m.size)
}

func (m *memory) get(class int) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.free[class]
	if len(l) == 0 {
		return make([]byte, leastSize<<class)
	}
	last := len(l) - 1
	b := l[last]
	l[last], m.free[class] = nil, l[:last]
	m.size -= len(b)
	return b
}

func (m *memory) put(b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.size+len(b) <= m.mostFree {
		c := classOf(len(b))
		m.size += len(b)
		m.free[c] = append(m.free[c], b)
	}
}

// A buffer is registered memory for the data of one command. Only its QP can use it, and the peer has no access: only RDMA
// Reads of this side write it.
type buffer struct {
	mem   []byte
	mr    *iwarp.MR
	class int
	id    int   // in buffers.all
	task  *task // whose RDMA Read is outstanding
}

// buffers holds the buffers of a queue.
type buffers struct {
	mu    sync.Mutex
	all   []*buffer // by id; nil: free
	holes []int     // free ids
	idle  [classes][]*buffer
	kept  int // octets of idle
}

// buffer returns a buffer for n octets, which the budget has granted, or nil if the RNIC registers no more.
func (q *queue) buffer(n int) *buffer {
	c := classOf(n)
	s := &q.bufs
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.idle[c]; len(l) > 0 {
		last := len(l) - 1
		b := l[last]
		s.idle[c] = l[:last]
		s.kept -= len(b.mem)
		q.t.memory.leave(len(b.mem))
		return b
	}
	mem := q.t.memory.get(c)
	mr, err := q.t.pd.RegisterMR(mem, stag.LocalWrite, &iwarp.MROptions{QP: q.qp})
	if err != nil {
		q.t.memory.put(mem)
		q.t.lines.warn("no buffer", "peer", q.remote, "err", err)
		return nil
	}
	b := &buffer{mem: mem, mr: mr, class: c, id: len(s.all)}
	if h := len(s.holes) - 1; h >= 0 {
		b.id, s.holes = s.holes[h], s.holes[:h]
		s.all[b.id] = b
	} else {
		s.all = append(s.all, b)
	}
	return b
}

// at returns a buffer that is in use.
func (s *buffers) at(id int) *buffer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

// giveBack takes back a buffer that neither a command nor the QP uses any more. No lock may be held.
func (q *queue) giveBack(b *buffer) {
	n := len(b.mem)
	q.bufs.put(q.t, b)
	q.t.budget.release(q, n)
}

func (s *buffers) put(t *Target, b *buffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept+len(b.mem) <= retained && t.memory.keep(len(b.mem)) {
		s.kept += len(b.mem)
		s.idle[b.class] = append(s.idle[b.class], b)
		return
	}
	s.free(t, b)
}

// free deregisters a buffer. All work that names it has completed, so free does not wait. mu must be held.
func (s *buffers) free(t *Target, b *buffer) {
	s.all[b.id] = nil
	s.holes = append(s.holes, b.id)
	if b.mr.Close() == nil { // otherwise something may still change the memory
		t.memory.put(b.mem)
	}
}

// close frees all buffers. The QP must have ended.
func (s *buffers) close(t *Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.all {
		if b != nil {
			s.free(t, b)
		}
	}
	t.memory.leave(s.kept)
	s.idle, s.kept = [classes][]*buffer{}, 0
}
