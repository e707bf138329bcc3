package kv

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/rma"
)

// A table holds the data of one tenant at a replica: the memory that clients read, and an index of it by key.
// The replica's lock guards it; memory has its own lock, which clients' reads take.
type table struct {
	name   string
	id     uint64
	shape  Shape
	memory *rma.Memory // of octets
	octets []byte
	blocks *blocks
	items  map[string]*item
	owners []*item // by entry
}

// An item is a key. It keeps its entry while it has a value or a change is in progress.
type item struct {
	key     string
	hash    uint64
	entry   uint32
	pending int // changes in progress
	live    bool
	block   uint32
	stored  uint32 // octets of the stored value
	version uint64
}

func (it *item) order() int { return orderOf(int(it.stored)) }

// logged returns how many octets the item takes in a log that contains only changes that count.
func (it *item) logged() uint64 {
	return uint64(changeLen(len(it.key), int(it.stored)-valueHead-len(it.key)))
}

// Errors for changes for which there is no room.
var (
	ErrFull = errors.New("kv: the store is full")

	errIndexFull  = fmt.Errorf("%w: the index has no room for this key: more buckets need new files", ErrFull)
	errValuesFull = fmt.Errorf("%w: there is no room for this value", ErrFull)
	errLogFull    = fmt.Errorf("%w: what is in the store does not fit into half of the log", ErrFull)
)

func newTable(name string, shape Shape) (*table, error) {
	if err := shape.check(); err != nil {
		return nil, fmt.Errorf("tenant %q: %w", name, err)
	}
	id, err := RegionOf(name)
	if err != nil {
		return nil, err
	}
	octets := make([]byte, shape.size())
	return &table{
		name: name, id: id, shape: shape, octets: octets, memory: rma.NewMemory(octets),
		blocks: newBlocks(shape.Values),
		items:  make(map[string]*item),
		owners: make([]*item, uint64(shape.Buckets)*bucketEntries),
	}, nil
}

// reserve finds room for a Put: an entry, and a block.
func (t *table) reserve(key []byte, stored int) (*item, uint32, error) {
	it, err := t.enter(key)
	if err != nil {
		return nil, 0, err
	}
	block, ok := t.blocks.alloc(orderOf(stored))
	if !ok {
		t.forget(it)
		return nil, 0, errValuesFull
	}
	return it, block, nil
}

// enter returns the item of a key, which it makes if necessary.
func (t *table) enter(key []byte) (*item, error) {
	if it := t.items[string(key)]; it != nil {
		return it, nil
	}
	hash := hashOf(key)
	bucket := t.shape.home(hash)
	for range t.shape.probes() {
		for i := range uint32(bucketEntries) {
			if at := bucket*bucketEntries + i; t.owners[at] == nil {
				return t.add(key, hash, at), nil
			}
		}
		bucket = t.shape.next(bucket)
	}
	return nil, errIndexFull
}

func (t *table) add(key []byte, hash uint64, at uint32) *item {
	it := &item{key: string(key), hash: hash, entry: at}
	t.items[it.key], t.owners[at] = it, it
	return it
}

// forget frees the entry of an item that has no value, unless a change of it is in progress. The entry in
// memory must be free already.
func (t *table) forget(it *item) {
	if !it.live && it.pending == 0 {
		delete(t.items, it.key)
		t.owners[it.entry] = nil
	}
}

// begin records that a change of the item is in progress.
func (t *table) begin(it *item) {
	it.pending++
	if it.pending == 1 {
		t.memory.Update(func(b []byte) { t.show(b, it) })
	}
}

// undo records that a change will not be made. Its block must be free already.
func (t *table) undo(it *item) {
	it.pending--
	t.memory.Update(func(b []byte) { t.show(b, it) })
	t.forget(it)
}

// finish makes a change that begin has recorded.
func (t *table) finish(it *item, c *change) {
	it.pending--
	t.change(it, c)
}

// apply makes a change that another replica has decided on, or that is in the log. If clients would not find its entry,
// the index had a different number of buckets when the change was made.
func (t *table) apply(c *change) error {
	if c.entry >= uint32(len(t.owners)) {
		return t.damaged(c, "the index has no such entry")
	}
	it, hash := t.items[string(c.key)], hashOf(c.key)
	switch {
	case !t.shape.reaches(hash, c.entry/bucketEntries):
		return t.damaged(c, "the key cannot have this entry")
	case it == nil && t.owners[c.entry] != nil:
		return t.damaged(c, "its entry belongs to another key")
	case it != nil && it.entry != c.entry:
		return t.damaged(c, "the key has another entry")
	case it != nil && it.version >= c.version:
		return nil // the change is known already
	case !c.deletes && !t.blocks.take(c.block, orderOf(storedLen(len(c.key), len(c.value)))):
		return t.damaged(c, "its block is not free")
	}
	if it == nil {
		it = t.add(c.key, hash, c.entry)
	}
	t.change(it, c)
	return nil
}

func (t *table) damaged(c *change, why string) error {
	return fmt.Errorf("kv: tenant %q: a change in the log is not possible, %v: %s: is the configuration, such as -buckets, another one?", t.name, c, why)
}

// change makes a change whose block is allocated, and frees the previous block.
func (t *table) change(it *item, c *change) {
	live, block, order := it.live, it.block, 0
	if live {
		order = it.order()
	}
	it.live, it.version = !c.deletes, c.version
	if it.live {
		it.block, it.stored = c.block, uint32(storedLen(len(c.key), len(c.value)))
	}
	t.memory.Update(func(b []byte) {
		if live {
			setCurrent(b[t.shape.blockAt(block):], false)
		}
		if it.live {
			putValue(b[t.shape.blockAt(it.block):][:it.stored], it.version, c.key, c.value)
		}
		t.show(b, it)
	})
	if live {
		t.blocks.give(block, order)
	}
	t.forget(it)
}

// show writes the entry of an item to the index. If it is not in the first bucket for the key, the buckets
// before it get the overflow mark, which is never removed.
func (t *table) show(b []byte, it *item) {
	e := entry{tag: tagOf(it.hash)}
	switch {
	case it.pending > 0:
		e.state = entryBusy
	case it.live:
		e.state, e.length, e.block, e.version = entryValue, it.stored, it.block, uint32(it.version)
	}
	for k := t.shape.home(it.hash); k != it.entry/bucketEntries; k = t.shape.next(k) {
		setOverflow(b[uint64(k)*bucketLen:])
	}
	e.put(b[uint64(it.entry)*entryLen:])
	if it.live {
		setCurrent(b[t.shape.blockAt(it.block):], it.pending == 0)
	}
}

// get appends the value of a key to dst.
func (t *table) get(dst, key []byte) (value []byte, ok bool) {
	it := t.items[string(key)]
	if it == nil || !it.live {
		return dst, false
	}
	head := valueHead + len(key)
	at, n := len(dst), int(it.stored)-head
	dst = slices.Grow(dst, n)[:at+n]
	_, _ = t.memory.ReadAt(dst[at:], int64(t.shape.blockAt(it.block))+int64(head)) // the block is within the memory
	return dst, true
}
