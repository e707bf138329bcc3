package rsocket

import (
	"io"
	"sync"

	"github.com/goiwarp/iwarp/rsocket/internal/stream"
	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// A slotTable is where the peer writes slots, and behind them the entries of the iomap. It is a Buffer, not plain memory, since the
// peer may write to it while this side reads.
type slotTable struct {
	order wire.Order

	mu  sync.Mutex
	mem []byte
}

// slotsSize is the length of the slots.
const slotsSize = stream.Slots * wire.SlotSize

func newSlotTable(order wire.Order, entries int) *slotTable {
	return &slotTable{order: order, mem: make([]byte, slotsSize+entries*wire.EntrySize)}
}

// Take returns a slot, and sets it to 0.
func (t *slotTable) Take(i int) wire.Slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := (*[wire.SlotSize]byte)(t.mem[i*wire.SlotSize:])
	s := wire.ParseSlot(b, t.order)
	clear(b[:])
	return s
}

// Entry returns an entry.
func (t *slotTable) Entry(i int) wire.Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return wire.ParseEntry((*[wire.EntrySize]byte)(t.mem[slotsSize+i*wire.EntrySize:]), t.order)
}

// Size returns the length of the table, as a Buffer must.
func (t *slotTable) Size() int64 { return int64(len(t.mem)) }

// WriteAt takes a Write of the peer, whose bounds were checked.
func (t *slotTable) WriteAt(p []byte, off int64) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return copy(t.mem[off:], p), nil
}

// ReadAt reads nothing: the peer has no right to read.
func (t *slotTable) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }
