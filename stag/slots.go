package stag

import "sync/atomic"

// slots is an open hash table of regions by index, with linear probing. Indices are
// random and therefore their own hash. Readers take no lock: they see a slot before
// or after a change, and a set of slots before or after it is replaced by another.
// Changes are made under the table's mutex.
type slots []atomic.Pointer[Region]

const minSlots = 16

// gone fills the slot of a removed region, so that probing goes on after it. Its
// index is 0, which find never searches for.
var gone = new(Region)

// slotsFor makes an empty set that is at most a quarter full with n regions.
func slotsFor(n int) slots {
	size := minSlots
	for size < 4*n {
		size *= 2
	}
	return make(slots, size)
}

// find returns the region with the index, or nil. It terminates because no more than
// half of the slots are ever in use.
func (s slots) find(index uint32) *Region {
	if index == 0 {
		return nil
	}
	mask := uint32(len(s) - 1)
	for i := index & mask; ; i = (i + 1) & mask {
		r := s[i].Load()
		if r == nil || r.stag.Index() == index {
			return r
		}
	}
}

// put stores a region whose index is not in the set, and reports whether it took
// an unused slot (rather than that of a removed region).
func (s slots) put(r *Region) (fresh bool) {
	mask := uint32(len(s) - 1)
	for i := r.stag.Index() & mask; ; i = (i + 1) & mask {
		switch s[i].Load() {
		case nil:
			s[i].Store(r)
			return true
		case gone:
			s[i].Store(r)
			return false
		}
	}
}

// remove removes the region, and reports whether it was there.
func (s slots) remove(r *Region) bool { return s.replace(r, gone) }

// replace replaces the region by fresh, which has the same index or is gone, and
// reports whether the region was there.
func (s slots) replace(r, fresh *Region) bool {
	mask := uint32(len(s) - 1)
	for i := r.stag.Index() & mask; ; i = (i + 1) & mask {
		switch s[i].Load() {
		case nil:
			return false
		case r:
			s[i].Store(fresh)
			return true
		}
	}
}

// rebuilt returns a set with the same n regions and without traces of removed ones.
func (s slots) rebuilt(n int) slots {
	fresh := slotsFor(n)
	for i := range s {
		if r := s[i].Load(); r != nil && r != gone {
			fresh.put(r)
		}
	}
	return fresh
}
