package stag

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// maxRegions is half of the index space, so that a random draw soon finds a free
// index.
const maxRegions = 1 << 23

// maxDraws bounds the search for a free index. With a working random source and a
// table that is not full, the chance of reaching it is below 2^-250.
const maxDraws = 256

// A Table holds the regions of one RNIC and finds them by STag. All methods may be
// called from any goroutine; [Table.Pin] takes no lock.
type Table struct {
	slots atomic.Pointer[slots]

	mu     lockorder.Mutex[lockorder.Table] // guards changes of the slots, and everything below
	live   int
	used   int // slots not nil: live ones and those of removed regions
	limit  int
	freed  quarantine
	random io.Reader
	octet  [1]byte // read from random; kept here so that reading does not allocate

	buffers updates
}

// NewTable returns an empty table whose STags come from crypto/rand.
func NewTable() *Table {
	t := &Table{limit: maxRegions, freed: quarantine{limit: quarantineSize}, random: rand.Reader}
	empty := slotsFor(0)
	t.slots.Store(&empty)
	return t
}

// Len returns the number of regions, valid or not, that have not been closed.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}

// lookup returns the region with this STag, index and key, or nil.
func (t *Table) lookup(s STag) *Region {
	r := t.slots.Load().find(s.Index())
	if r == nil || r.stag != s {
		return nil
	}
	return r
}

// insert gives the region an STag, with the key if one is chosen, and adds it to the table.
func (t *Table) insert(r *Region, key *uint8) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live >= t.limit {
		return ErrExhausted
	}
	s, err := t.draw()
	if err != nil {
		return err
	}
	if key != nil {
		s = s&^0xff | STag(*key)
	}
	r.stag = s
	t.reserve()
	if t.slots.Load().put(r) {
		t.used++
	}
	t.live++
	return nil
}

// draw picks an STag that is hard to predict, spread over all of its 32 bits, and
// whose index is neither in use nor in quarantine (RFC 5040 section 8.1.1 (8)).
func (t *Table) draw() (STag, error) {
	var b [4]byte
	for range maxDraws {
		if _, err := io.ReadFull(t.random, b[:]); err != nil {
			return 0, fmt.Errorf("stag: reading randomness: %w", err)
		}
		s := STag(binary.BigEndian.Uint32(b[:]))
		index := s.Index()
		if index != 0 && t.slots.Load().find(index) == nil && !t.freed.has(index) {
			return s, nil
		}
	}
	return 0, ErrExhausted
}

// randomByte returns a random octet, for keys.
func (t *Table) randomByte() (uint8, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := io.ReadFull(t.random, t.octet[:]); err != nil {
		return 0, fmt.Errorf("stag: reading randomness: %w", err)
	}
	return t.octet[0], nil
}

// replace replaces r by fresh, which has the same index.
func (t *Table) replace(r, fresh *Region) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slots.Load().replace(r, fresh)
}

// reserve makes sure that half of the slots stay unused when one more is taken.
func (t *Table) reserve() {
	old := *t.slots.Load()
	if 2*(t.used+1) <= len(old) {
		return
	}
	fresh := old.rebuilt(t.live + 1)
	t.slots.Store(&fresh)
	t.used = t.live
}

// remove removes the region, and puts its index into quarantine. A region that is not in
// the table is ignored.
func (t *Table) remove(r *Region) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.slots.Load().remove(r) {
		t.live--
		t.freed.add(r.stag.Index())
	}
}
