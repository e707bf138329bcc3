package commit

import "math/bits"

const (
	pageShift = 12
	zoneShift = pageShift + 6
	maxZones  = 1 << 16 // of one set: some 2 MiB
)

// pages is a set of whole pages of 4096 octets. A zone is 64 pages; the map contains the bits of
// each zone with pages in the set.
type pages map[int64]uint64

// whole reports whether r begins and ends on page boundaries.
func (r Range) whole() bool { return (r.Off|r.end())&(1<<pageShift-1) == 0 }

// pages returns the pages that r touches.
func (r Range) pages() Range {
	off := r.Off >> pageShift << pageShift
	return Range{off, ((r.end()-1)>>pageShift+1)<<pageShift - off}
}

// zones returns the first and the last zone that r touches.
func (r Range) zones() (first, last int64) { return r.Off >> zoneShift, (r.end() - 1) >> zoneShift }

// in returns the bits of the pages of a zone that r touches.
func (r Range) in(zone int64) uint64 {
	page := zone << (zoneShift - pageShift)
	first, last := max(r.Off>>pageShift-page, 0), min((r.end()-1)>>pageShift-page, 63)
	return ^uint64(0) << first & (^uint64(0) >> (63 - last))
}

// add adds the pages that r touches, or returns false if there is no room for them.
func (p *pages) add(r Range) bool {
	first, last := r.zones()
	if last-first >= int64(maxZones-len(*p)) {
		return false
	}
	if *p == nil {
		*p = make(pages)
	}
	for z := first; z <= last; z++ {
		(*p)[z] |= r.in(z)
	}
	return true
}

// each calls f with each zone in which r touches pages of the set, and with the bits of those
// pages, until f returns false.
func (p pages) each(r Range, f func(zone int64, set uint64) bool) {
	first, last := r.zones()
	if last-first >= int64(len(p)) {
		for z, set := range p {
			if set &= r.in(z); set != 0 && !f(z, set) {
				return
			}
		}
		return
	}
	for z := first; z <= last; z++ {
		if set := p[z] & r.in(z); set != 0 && !f(z, set) {
			return
		}
	}
}

// has reports whether r touches a page of the set.
func (p pages) has(r Range) (found bool) {
	p.each(r, func(int64, uint64) bool {
		found = true
		return false
	})
	return found
}

// runs calls f, zone by zone, with the runs of pages of the set that r touches.
func (p pages) runs(r Range, f func(Range)) {
	p.each(r, func(z int64, set uint64) bool {
		for set != 0 {
			first := bits.TrailingZeros64(set)
			n := bits.TrailingZeros64(^(set >> first))
			f(Range{z<<zoneShift + int64(first)<<pageShift, int64(n) << pageShift})
			set &^= ^uint64(0) >> (64 - n) << first
		}
		return true
	})
}

// holds reports whether all pages that r touches are in the set. For a range in several zones it returns false.
func (p pages) holds(r Range) bool {
	first, last := r.zones()
	return first == last && r.in(first)&^p[first] == 0
}

// remove removes the pages that r touches.
func (p pages) remove(r Range) {
	p.each(r, func(z int64, set uint64) bool {
		if p[z] &^= set; p[z] == 0 {
			delete(p, z)
		}
		return true
	})
}
