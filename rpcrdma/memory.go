package rpcrdma

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

const (
	leastMemory = 8 << 10
	keptPieces  = 16 // unused pieces that an account keeps, at most
)

// sizeOf returns the size of a piece of memory for n octets: at most an eighth more than n, so that few sizes are in use.
func sizeOf(n int) int {
	if n <= leastMemory {
		return leastMemory
	}
	step := stepOf(n - 1)
	return (n + step - 1) &^ (step - 1)
}

// stepOf returns the distance between the sizes of pieces near n octets.
func stepOf(n int) int { return 1 << (bits.Len(uint(n)) - 4) }

// A memory is a registered piece of memory.
type memory struct {
	acc        *account
	b          []byte
	size       int
	mr         *iwarp.MR
	prev, next *memory // in the ring of the idle pieces
}

// A pool grants memory to the connections of a listener, up to limit octets. A connection that has its
// share waits until it releases some itself; all others wait for their turn.
type pool struct {
	limit, share int
	access       stag.Access

	mu         sync.Mutex // a leaf
	used, kept int        // octets in use, and octets of idle pieces
	idle       memory     // the ring of idle pieces, the oldest first
	waits      waiter     // the ring of waiters
}

// A waiter waits for memory.
type waiter struct {
	acc        *account
	n          int
	taker      taker
	prev, next *waiter
}

// A taker is granted the memory that was requested for it, or gets an error. No lock is held.
type taker interface{ granted(m *memory, err error) }

func newPool(limit, share int, access stag.Access) *pool {
	p := &pool{limit: limit, share: share, access: access}
	p.idle.prev, p.idle.next = &p.idle, &p.idle
	p.waits.prev, p.waits.next = &p.waits, &p.waits
	return p
}

// An account is the part of a pool that a connection uses.
type account struct {
	p      *pool
	home   *home
	used   int // under the lock of the pool, like the fields below
	idle   []*memory
	closed bool
}

// A home is the PD of a connection, which is closed with the last region in it.
type home struct {
	pd   *iwarp.PD
	uses atomic.Int32
}

func (h *home) leave() {
	if h.uses.Add(-1) == 0 {
		_ = h.pd.Close()
	}
}

// ask makes w wait for n octets. It may be granted before ask returns.
func (a *account) ask(w *waiter, n int, t taker) {
	p := a.p
	w.acc, w.n, w.taker = a, n, t
	p.mu.Lock()
	w.prev, w.next = p.waits.prev, &p.waits
	w.prev.next, w.next.prev = w, w
	p.mu.Unlock()
	p.deliver()
}

// obstructs reports whether an account holds memory while another one, within its share, waits for memory.
func (a *account) obstructs() bool {
	p := a.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := p.waits.next; w != &p.waits; w = w.next {
		if a.used > 0 && w.acc != a && w.acc.used+sizeOf(w.n) <= p.share {
			return true
		}
	}
	return false
}

// cancel ends a wait. It reports false if memory was granted meanwhile: the taker has it, or is about to get it.
func (p *pool) cancel(w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.leaves() || w.acc == nil
}

// leaves removes w from the ring, and reports whether it was in it. mu is held.
func (w *waiter) leaves() bool {
	if w.next == nil {
		return false
	}
	w.prev.next, w.next.prev = w.next, w.prev
	w.prev, w.next = nil, nil
	return true
}

// deliver grants memory to all waiters whose turn it is.
func (p *pool) deliver() {
	for {
		t, m, old := p.next()
		old.close()
		if t == nil {
			return
		}
		err := m.register()
		if err != nil {
			p.put(m)
			m = nil
		}
		t.granted(m, err)
	}
}

// next returns the taker of the next waiter whose turn it is, its memory, and idle memory that must be closed for it.
func (p *pool) next() (t taker, m, old *memory) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := p.waits.next; w != &p.waits; w = w.next {
		size, a := sizeOf(w.n), w.acc
		if a.used+size > p.share {
			continue
		}
		if p.used+size > p.limit {
			return nil, nil, nil
		}
		w.leaves()
		a.used += size
		p.used += size
		if m = a.reuse(size); m == nil {
			m = &memory{acc: a, size: size}
		}
		for p.used+p.kept > p.limit {
			oldest := p.idle.next
			oldest.acc.forget(oldest)
			oldest.next, old = old, oldest
		}
		return w.taker, m, old
	}
	return nil, nil, nil
}

// reuse takes the newest idle piece of a size. The lock of the pool is held, as in forget.
func (a *account) reuse(size int) *memory {
	for i := len(a.idle) - 1; i >= 0; i-- {
		if m := a.idle[i]; m.size == size {
			a.forget(m)
			return m
		}
	}
	return nil
}

// forget removes a piece from the idle pieces.
func (a *account) forget(m *memory) {
	for i, o := range a.idle {
		if o == m {
			a.idle = append(a.idle[:i], a.idle[i+1:]...)
			break
		}
	}
	m.prev.next, m.next.prev = m.next, m.prev
	m.prev, m.next = nil, nil
	a.p.kept -= m.size
}

// register registers a new piece. A piece that was used before is registered already.
func (m *memory) register() (err error) {
	if m.mr != nil {
		return nil
	}
	m.b = make([]byte, m.size)
	if m.mr, err = m.acc.home.pd.RegisterMR(m.b, m.acc.p.access, nil); err != nil {
		return err
	}
	m.acc.home.uses.Add(1)
	return nil
}

// close closes a list of pieces.
func (m *memory) close() {
	for ; m != nil; m = m.next {
		if m.mr != nil {
			_ = m.mr.Close()
			m.acc.home.leave()
		}
	}
}

// put returns memory whose work requests have completed to the pool. Call deliver afterwards, without a lock.
func (p *pool) put(m *memory) {
	a := m.acc
	p.mu.Lock()
	a.used -= m.size
	p.used -= m.size
	old := m
	if !a.closed && m.mr != nil {
		old = nil
		if len(a.idle) == keptPieces {
			old = a.idle[0]
			a.forget(old)
		}
		a.idle = append(a.idle, m)
		m.prev, m.next = p.idle.prev, &p.idle
		m.prev.next, m.next.prev = m, m
		p.kept += m.size
	}
	p.mu.Unlock()
	old.close()
}

// close ends an account: its waiters get nothing, and memory that is returned later is closed.
func (a *account) close() {
	p := a.p
	p.mu.Lock()
	a.closed = true
	for w := p.waits.next; w != &p.waits; {
		next := w.next
		if w.acc == a {
			w.leaves()
			w.acc = nil
		}
		w = next
	}
	var old *memory
	for len(a.idle) > 0 {
		m := a.idle[0]
		a.forget(m)
		m.next, old = old, m
	}
	p.mu.Unlock()
	old.close()
	p.deliver()
}
