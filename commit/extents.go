package commit

import (
	"math"
	"slices"
	"sort"
)

// extents is a set of octets: ranges in ascending order that neither overlap nor touch.
type extents []Range

// everything is the range of all possible octets.
var everything = Range{0, math.MaxInt64}

// from returns the index of the first range that ends after off.
func (e extents) from(off int64) int {
	return sort.Search(len(e), func(i int) bool { return e[i].end() > off })
}

// end returns where r ends. A range that is too long, by which a caller means everything, ends at the last offset.
func (r Range) end() int64 {
	if r.Len > 0 && r.Off > math.MaxInt64-r.Len {
		return math.MaxInt64
	}
	return r.Off + r.Len
}

// within returns the octets of r that are within o, which must overlap r.
func (r Range) within(o Range) Range {
	off := max(r.Off, o.Off)
	return Range{off, min(r.end(), o.end()) - off}
}

// has reports whether an octet of r is in the set.
func (e extents) has(r Range) bool {
	i := e.from(r.Off)
	return r.Len > 0 && i < len(e) && e[i].Off < r.end()
}

func (e *extents) add(r Range) {
	if r.Len <= 0 {
		return
	}
	s, i := *e, e.from(r.Off-1)
	j := i
	for ; j < len(s) && s[j].Off <= r.end(); j++ {
		end := max(r.end(), s[j].end())
		r.Off = min(r.Off, s[j].Off)
		r.Len = end - r.Off
	}
	*e = slices.Replace(s, i, j, r)
}

// join merges range i, its nearer neighbour, and the gap between them into one range.
func (e *extents) join(i int) {
	s := *e
	if i == len(s)-1 || i > 0 && s[i].Off-s[i-1].end() <= s[i+1].Off-s[i].end() {
		i--
	}
	s[i].Len = s[i+1].end() - s[i].Off
	*e = slices.Delete(s, i+1, i+2)
}

func (e *extents) remove(r Range) {
	if r.Len <= 0 {
		return
	}
	s, i := *e, e.from(r.Off)
	if i == len(s) || s[i].Off >= r.end() {
		return
	}
	if end := s[i].end(); s[i].Off < r.Off && end > r.end() {
		s[i].Len = r.Off - s[i].Off
		*e = slices.Insert(s, i+1, Range{r.end(), end - r.end()})
		return
	}
	if s[i].Off < r.Off {
		s[i].Len = r.Off - s[i].Off
		i++
	}
	j := i
	for j < len(s) && s[j].end() <= r.end() {
		j++
	}
	if j < len(s) && s[j].Off < r.end() {
		s[j].Len = s[j].end() - r.end()
		s[j].Off = r.end()
	}
	*e = slices.Delete(s, i, j)
}
