package stag

import (
	"errors"
	"fmt"
	"math/bits"
)

// Options say how a region is registered. The zero value is a region at TO 0 that
// only the local side may read.
type Options struct {
	Access  Access  // RemoteWrite and RemoteAtomic need LocalWrite
	BaseTO  uint64  // TO of the first octet; BaseTO + length must fit in 64 bits
	Scope   Scope   // Stream other than 0: only that stream may use the STag
	Flusher Flusher // nil: the region is not durable
	Watch   Watch   // told of each placement into the region, after Dirty; nil: none
	// Dirty is called after each placement into the region, within its pin. If it panics the placement has failed,
	// with a [PanicError]. nil: none.
	Dirty func(off, n int64)
	// Through is called after Watch, but not for an atomic operation or a Store. It may wait for the
	// Flusher; what holds a lock of the table must not. nil: none.
	Through func(off, n int64)
	// Failed is told, after Watch, of a peer's RDMA Write that the Buffer could not take,
	// which is then no error, unless Failed panics. nil: it is one.
	Failed func(off, n int64, err error)
	// Key is the low octet of the STag (draft-hilland-rddp-verbs section 7.2). nil: one
	// that is hard to predict. Allocate does not look at it; each registration brings its own.
	Key *uint8
}

// Register makes mem accessible under a new, unpredictable STag. From now on, and
// until it is invalidated, the peers in its scope may read or write mem at any
// moment that the rights allow. The table keeps mem until [Table.Close].
//
// It fails if mem is empty, if the rights contradict each other, if the region
// would reach TO 2^64, so that TO plus length wraps, or with [ErrExhausted].
func (t *Table) Register(mem []byte, o Options) (*Region, error) {
	return t.register(&Region{mem: mem, size: uint64(len(mem))}, o)
}

// RegisterBuffer does for a Buffer what Register does for memory. Its size is asked
// once, here.
func (t *Table) RegisterBuffer(b Buffer, o Options) (*Region, error) {
	if b == nil {
		return nil, errNoBuffer
	}
	size := b.Size()
	if err := checkSize(size); err != nil {
		return nil, err
	}
	return t.register(&Region{buf: b, size: uint64(size)}, o)
}

var (
	errEmpty    = errors.New("stag: an empty region")
	errNoBuffer = errors.New("stag: no buffer: it is nil")
)

func checkSize(size int64) error {
	if size < 0 {
		return fmt.Errorf("stag: buffer of size %d, less than 0", size)
	}
	return nil
}

func (t *Table) register(r *Region, o Options) (*Region, error) {
	if r.size == 0 {
		return nil, errEmpty
	}
	if !o.Access.sound() {
		return nil, o.Access.unsound()
	}
	if _, carry := bits.Add64(o.BaseTO, r.size, 0); carry != 0 {
		return nil, fmt.Errorf("stag: %d octets from TO %#x wrap: TO plus length is at most 2^64-1", r.size, o.BaseTO)
	}
	r.access, r.base, r.scope = o.Access, o.BaseTO, o.Scope
	r.flush, r.watch, r.dirty, r.through, r.failed = o.Flusher, o.Watch, o.Dirty, o.Through, o.Failed
	if err := t.insert(r, o.Key); err != nil {
		return nil, err
	}
	return r, nil
}
