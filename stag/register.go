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
	Watch   Watch   // called for each placement into the region, after Dirty; nil: none
	// Dirty is called after each placement into the region, within its pin. If it panics the placement has failed,
	// with a [PanicError]. nil: none.
	Dirty func(off, n int64)
	// Through is called after Watch, but not for an atomic operation or a Store, which may hold a lock
	// of the table: Through may wait for the Flusher. nil: none.
	Through func(off, n int64)
	// Failed is called, after Watch, for a peer's RDMA Write that the Buffer could not store.
	// The Write is then not an error, unless Failed panics. nil: it is an error.
	Failed func(off, n int64, err error)
	// Key is the low octet of the STag (draft-hilland-rddp-verbs section 7.2). nil: a key
	// that is hard to predict. Allocate ignores it; each registration has its own.
	Key *uint8
}

// Register makes mem accessible under a new, unpredictable STag. From now on, and
// until it is invalidated, the peers in its scope may read or write mem at any
// time, as the rights allow. The table retains mem until [Table.Close].
//
// It fails if mem is empty, if the rights contradict each other, if the region
// would reach TO 2^64, so that TO plus length wraps, or with [ErrExhausted].
func (t *Table) Register(mem []byte, o Options) (*Region, error) {
	return t.register(&Region{mem: mem, size: uint64(len(mem))}, o)
}

// RegisterBuffer is like Register, for a Buffer. It calls b.Size once.
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
