package backend

import (
	"slices"
	"sync"
	"time"
)

// FakeConfig is the shape of a [Fake].
type FakeConfig struct {
	Size      int64 // octets, rounded down to the block size
	BlockSize int   // 0: 4096
	ReadOnly  bool
	// Through makes each write durable at once: the Fake is not volatile.
	Through bool
	// Plain is a medium with only reads, writes and syncs: FUA, Write Zeroes and Trim are built
	// from them.
	Plain bool
	// Forgetful makes syncs do nothing and report success: a defect that tests of durability
	// must find.
	Forgetful bool
}

// A Fake is an in-memory Backend for tests: it records the calls of its medium, fails and delays them
// as told, and loses power. Checks, shared syncs and failures work as for files and block devices; only
// the medium differs.
//
// Delays use package time, and are virtual under testing/synctest.
type Fake struct {
	*volume
	m *fakeMedium
}

// A Call is one call of the medium of a Fake.
type Call string

// The calls. One operation of the Backend may make several of them.
const (
	CallRead   Call = "read"
	CallWrite  Call = "write"
	CallWriteD Call = "write durably" // with FUA; one that fails is followed by a write
	CallPunch  Call = "punch"         // Trim, and Write Zeroes that unmaps
	CallZero   Call = "zero"
	CallSync   Call = "sync"
)

// A Record is one call that has begun.
type Record struct {
	Call     Call
	Off, Len int64
}

// A Fault is what happens to calls of the medium. If the fault has an error, the call fails without
// reading or writing anything. A sync that fails has made nothing durable.
type Fault struct {
	Call     Call  // "": all
	Off, Len int64 // only calls that touch this range; Len 0: all
	Skip     int   // how many of these calls are skipped first
	Times    int   // how many calls the fault then affects; 0: all
	// Wait, unless nil, delays the call until it is closed or delivers a value; then Delay passes.
	Wait  <-chan struct{}
	Delay time.Duration
	Err   error // of the system, such as syscall.EIO; nil: the call continues
}

// NewFake returns a Fake filled with zeros.
func NewFake(c FakeConfig) (*Fake, error) {
	if c.BlockSize == 0 {
		c.BlockSize = defaultBlock
	}
	g, err := newGeometry(c.Size, c.BlockSize, c.ReadOnly)
	if err != nil {
		return nil, err
	}
	return newFake(c, g, make(map[int64]*fakeBlock))
}

func newFake(c FakeConfig, g geometry, blocks map[int64]*fakeBlock) (*Fake, error) {
	m := &fakeMedium{config: c, block: int64(g.block), blocks: blocks}
	v, err := newVolume(g, m, !c.Through && !c.ReadOnly, Traits{Trims: !c.Plain, Granularity: g.block})
	if err != nil {
		return nil, err
	}
	return &Fake{v, m}, nil
}

// Inject adds a fault. If several faults match a call, all delay it, and the first error counts.
func (f *Fake) Inject(fault Fault) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.m.faults = append(f.m.faults, &fault)
}

// Heal removes all faults. A Backend that a failed sync has failed stays failed.
func (f *Fake) Heal() {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.m.faults = nil
}

// Records returns the calls so far, in the order in which they began.
func (f *Fake) Records() []Record {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return slices.Clone(f.m.records)
}

// Count returns how many calls of one kind there were.
func (f *Fake) Count(c Call) (n int) {
	for _, r := range f.Records() {
		if r.Call == c {
			n++
		}
	}
	return n
}

// A fakeMedium consists of blocks, and records what a power cut may leave of each.
type fakeMedium struct {
	config FakeConfig
	block  int64

	mu      sync.Mutex
	blocks  map[int64]*fakeBlock // by number; a missing block is zeros
	clock   uint64               // changes so far
	faults  []*Fault
	records []Record
	dead    bool // power was lost
}

// begin records a call, and applies the faults to it.
func (m *fakeMedium) begin(r Record) error {
	hits := m.hits(r)
	var failure error
	for _, f := range hits {
		if f.Wait != nil {
			<-f.Wait
		}
		if f.Delay > 0 {
			time.Sleep(f.Delay)
		}
		if failure == nil {
			failure = f.Err
		}
	}
	return failure
}

func (m *fakeMedium) hits(r Record) (hits []*Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = append(m.records, r)
	m.faults = slices.DeleteFunc(m.faults, func(f *Fault) bool {
		if !f.matches(r) {
			return false
		}
		if f.Skip > 0 {
			f.Skip--
			return false
		}
		hits = append(hits, f)
		if f.Times > 0 {
			f.Times--
			return f.Times == 0
		}
		return false
	})
	return hits
}

func (f *Fault) matches(r Record) bool {
	if f.Call != "" && f.Call != r.Call {
		return false
	}
	return f.Len == 0 || r.Off < f.Off+f.Len && f.Off < r.Off+r.Len
}

func (m *fakeMedium) readAt(p []byte, off int64) error {
	if err := m.begin(Record{CallRead, off, int64(len(p))}); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := int64(0); i < int64(len(p)); i += m.block {
		m.blocks[(off+i)/m.block].read(p[i : i+m.block])
	}
	return nil
}

func (m *fakeMedium) writeAt(p []byte, off int64) error {
	if err := m.begin(Record{CallWrite, off, int64(len(p))}); err != nil {
		return err
	}
	return m.change(off, int64(len(p)), p, m.config.Through)
}

func (m *fakeMedium) writeDurably(p []byte, off int64) error {
	if m.config.Plain {
		return errUnsupported
	}
	if err := m.begin(Record{CallWriteD, off, int64(len(p))}); err != nil {
		return err
	}
	return m.change(off, int64(len(p)), p, !m.config.Forgetful)
}

func (m *fakeMedium) punch(off, n int64) error { return m.makeZeros(CallPunch, off, n) }

func (m *fakeMedium) zero(off, n int64) error { return m.makeZeros(CallZero, off, n) }

func (m *fakeMedium) makeZeros(c Call, off, n int64) error {
	if m.config.Plain {
		return errUnsupported
	}
	if err := m.begin(Record{c, off, n}); err != nil {
		return err
	}
	return m.change(off, n, nil, m.config.Through)
}

func (m *fakeMedium) close() error { return nil }
