package commit

import "slices"

const (
	maxExtents  = 1024            // of one set: 16 KiB
	keptExtents = maxExtents - 64 // so few that space is made for many at a time
)

// octetSet is a set of octets whose memory is bounded: ranges, and whole pages if there would be too
// many ranges. Ranges of whole pages become pages first, which keeps the set exact. If there are still
// too many ranges, the set contains extra octets, the rest of their pages, but never lacks any. Extra
// octets stay until all octets of their page are removed.
type octetSet struct {
	exact extents
	pages pages
	hand  int64 // the next range to be widened is the first from here, so that each has its turn
}

// has reports whether an octet of r is in the set.
func (o *octetSet) has(r Range) bool {
	return o.exact.has(r) || len(o.pages) > 0 && r.Len > 0 && o.pages.has(r)
}

func (o *octetSet) add(r Range) {
	if len(o.pages) > 0 && o.pages.holds(r) {
		return
	}
	o.exact.add(r)
	o.bound()
}

func (o *octetSet) remove(r Range) {
	if r.Len <= 0 {
		return
	}
	if len(o.pages) > 0 {
		o.split(r.Off)
		o.split(r.end())
		if o.pages.remove(r); len(o.pages) == 0 {
			o.pages = nil // the memory is no longer needed
		}
	}
	o.exact.remove(r)
	o.bound()
}

// split turns the page that contains off into a range, so that a part of it can be removed.
func (o *octetSet) split(off int64) {
	page := Range{off, 1}.pages()
	if page.Off < off && o.pages.has(page) {
		o.pages.remove(page)
		o.exact.add(page)
	}
}

// bound reduces the number of ranges if there are too many.
func (o *octetSet) bound() {
	if len(o.exact) <= maxExtents {
		return
	}
	o.exact = slices.DeleteFunc(o.exact, func(r Range) bool { return r.whole() && o.pages.add(r) })
	for len(o.exact) > keptExtents {
		o.widen()
	}
}

// widen turns a range into whole pages, or joins it with another range if there is no room for them.
func (o *octetSet) widen() {
	i := o.exact.from(o.hand)
	if i == len(o.exact) {
		i = 0
	}
	r := o.exact[i]
	o.hand = r.end()
	if o.pages.add(r) {
		o.exact.remove(r.pages())
	} else {
		o.exact.join(i)
	}
}

// each calls f with ranges that together are all octets of the set within r.
func (o *octetSet) each(r Range, f func(Range)) {
	for i := o.exact.from(r.Off); i < len(o.exact) && o.exact[i].Off < r.end(); i++ {
		f(o.exact[i].within(r))
	}
	if len(o.pages) > 0 {
		o.pages.runs(r, func(run Range) { f(run.within(r)) })
	}
}

// clear removes everything.
func (o *octetSet) clear() { o.exact, o.pages = o.exact[:0], nil }
