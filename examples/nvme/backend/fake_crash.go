package backend

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
)

// A fakeBlock is what was written to one block and may still be there after a power cut.
type fakeBlock struct {
	durable []byte    // nil: zeros
	cached  []version // written since, the latest last
}

// A version is the contents of a block.
type version struct {
	at   uint64 // when it was written: see fakeMedium.clock
	data []byte // never changed; nil: zeros
}

// read copies the contents. A nil fakeBlock is zeros.
func (b *fakeBlock) read(p []byte) {
	var data []byte
	if b != nil {
		data = b.durable
		if n := len(b.cached); n > 0 {
			data = b.cached[n-1].data
		}
	}
	if data == nil {
		clear(p)
		return
	}
	copy(p, data)
}

// sync makes durable what was written up to a time.
func (b *fakeBlock) sync(upTo uint64) {
	n := 0
	for n < len(b.cached) && b.cached[n].at <= upTo {
		b.durable = b.cached[n].data
		n++
	}
	b.cached = slices.Delete(b.cached, 0, n)
}

// errPower is the error of a medium without power.
var errPower = errors.New("the power is off")

// change writes the n octets of p at off, or n zeros if p is nil. If durable is set, they are
// durable, and no older version can come back.
func (m *fakeMedium) change(off, n int64, p []byte, durable bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errPower
	}
	m.clock++
	for i := int64(0); i < n; i += m.block {
		at := (off + i) / m.block
		b := m.blocks[at]
		if b == nil {
			b = new(fakeBlock)
			m.blocks[at] = b
		}
		v := version{at: m.clock}
		if p != nil {
			v.data = slices.Clone(p[i : i+m.block])
		}
		b.cached = append(b.cached, v)
		if durable {
			b.sync(m.clock)
		}
	}
	return nil
}

// sync makes durable what was written before it was called.
func (m *fakeMedium) sync() error {
	m.mu.Lock()
	upTo := m.clock
	m.mu.Unlock()
	if err := m.begin(Record{Call: CallSync}); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errPower
	}
	if m.config.Forgetful {
		return nil
	}
	for _, b := range m.blocks {
		b.sync(upTo)
	}
	return nil
}

// Crash cuts the power, and returns the Fake that exists when power returns. It contains everything
// that was durable. In addition, each block has any of the versions that were written since, or none;
// seed chooses. If torn is set, a block that was written since may consist of a part of one version, up
// to a multiple of 512 octets, and a part of another; otherwise no block is torn.
//
// Running operations fail. The new Fake has no faults and no records.
func (f *Fake) Crash(seed uint64, torn bool) (*Fake, error) {
	m := f.m
	m.mu.Lock()
	m.dead = true
	r := rand.New(rand.NewPCG(seed, 0))
	after := make(map[int64]*fakeBlock, len(m.blocks))
	for _, at := range slices.Sorted(maps.Keys(m.blocks)) { // so that the seed alone decides
		after[at] = &fakeBlock{durable: m.blocks[at].crash(r, m.block, torn)}
	}
	m.mu.Unlock()
	f.closed.Store(true)
	return newFake(m.config, f.geometry, after)
}

// crash returns what a power cut leaves of a block.
func (b *fakeBlock) crash(r *rand.Rand, size int64, torn bool) []byte {
	pick := func() []byte {
		if i := r.IntN(len(b.cached) + 1); i > 0 {
			return b.cached[i-1].data
		}
		return b.durable
	}
	first := pick()
	if !torn || len(b.cached) == 0 || size == minBlock {
		return first
	}
	second, cut := pick(), minBlock*(1+r.Int64N(size/minBlock-1))
	whole := make([]byte, size)
	copy(whole, first)
	if second == nil {
		clear(whole[cut:])
	} else {
		copy(whole[cut:], second[cut:])
	}
	return whole
}
