package rsocket

import (
	"io"
	"sync"

	"github.com/goiwarp/iwarp/rsocket/internal/stream"
	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// A slotTable is where the peer writes slots. It is a Buffer, not memory, since the peer may write one
// while this side reads another.
type slotTable struct {
	order wire.Order

	mu    sync.Mutex
	slots [stream.Slots * wire.SlotSize]byte
}

// Take returns a slot, and sets it to 0.
func (t *slotTable) Take(i int) wire.Slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := (*[wire.SlotSize]byte)(t.slots[i*wire.SlotSize:])
	s := wire.ParseSlot(b, t.order)
	clear(b[:])
	return s
}

// Size is that of a Buffer.
func (t *slotTable) Size() int64 { return int64(len(t.slots)) }

// WriteAt is a Write of the peer, within bounds that were checked.
func (t *slotTable) WriteAt(p []byte, off int64) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return copy(t.slots[off:], p), nil
}

// ReadAt reads nothing: the peer has no right to read.
func (t *slotTable) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }
