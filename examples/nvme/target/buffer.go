package target

import (
	"math/bits"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// Buffers have lengths that are powers of two: classes.
const (
	leastBits = 12                 // 4 KiB
	classes   = 23 - leastBits + 1 // up to 8 MiB, the largest MDTS
	retained  = 256 << 10          // octets of idle buffers that a queue keeps registered
	pooled    = 64 << 20           // octets of memory that the process keeps for others
	leastSize = 1 << leastBits     // octets
)

func classOf(n int) int { return max(bits.Len(uint(n-1))-leastBits, 0) }

// sizeOf is the length of a buffer for n octets.
func sizeOf(n int) int { return leastSize << classOf(n) }

// memory is memory that was that of buffers.
type memory struct {
	mu   sync.Mutex
	free [classes][][]byte
	size int
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
	if m.size+len(b) <= pooled {
		c := classOf(len(b))
		m.size += len(b)
		m.free[c] = append(m.free[c], b)
	}
}

// A buffer is registered memory for the data of one command. Only its QP can use it, and the peer has no right: octets come
// into it by RDMA Reads of this side alone.
type buffer struct {
	mem   []byte
	mr    *iwarp.MR
	class int
	id    int   // in buffers.all
	task  *task // whose RDMA Read is outstanding
}

// buffers are those of a queue.
type buffers struct {
	mu    sync.Mutex
	all   []*buffer // by id; nil: free
	holes []int     // free ids
	idle  [classes][]*buffer
	kept  int // octets of idle
}

// buffer is a buffer for n octets, which the budget has granted. nil: the RNIC registers no more.
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

// at finds a buffer that is in use.
func (s *buffers) at(id int) *buffer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

// giveBack takes a buffer that neither a command nor the QP uses any more. No lock is held.
func (q *queue) giveBack(b *buffer) {
	n := len(b.mem)
	q.bufs.put(q.t, b)
	q.t.budget.release(q, n)
}

func (s *buffers) put(t *Target, b *buffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept+len(b.mem) <= retained {
		s.kept += len(b.mem)
		s.idle[b.class] = append(s.idle[b.class], b)
		return
	}
	s.free(t, b)
}

// free deregisters a buffer. All work that names it has completed, so it does not wait. mu is held.
func (s *buffers) free(t *Target, b *buffer) {
	s.all[b.id] = nil
	s.holes = append(s.holes, b.id)
	if b.mr.Close() == nil { // otherwise it is not certain that nothing changes the memory
		t.memory.put(b.mem)
	}
}

// close frees all buffers. The QP has ended.
func (s *buffers) close(t *Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.all {
		if b != nil {
			s.free(t, b)
		}
	}
	s.idle = [classes][]*buffer{}
}
