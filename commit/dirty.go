package commit

import (
	"math/bits"
	"sync/atomic"
)

// A Range is n octets of a backing from off.
type Range struct{ Off, Len int64 }

const (
	minChunk  = 4096
	maxChunks = 1 << 18 // of one backing: the bits for them are 32 KiB
)

// chunks is a set of the chunks of a backing: one bit each, changed without a lock.
type chunks struct {
	size  int64
	shift uint // a chunk has 1 << shift octets
	words []atomic.Uint64
}

func newChunks(size int64) chunks {
	c := chunks{size: size, shift: uint(bits.Len(minChunk - 1))}
	for (size-1)>>c.shift >= maxChunks {
		c.shift++
	}
	n := (size-1)>>c.shift + 1
	c.words = make([]atomic.Uint64, (n+63)/64)
	return c
}

// clip limits a range to the octets of the backing.
func (c *chunks) clip(r Range) Range {
	r.Off = min(max(r.Off, 0), c.size)
	r.Len = min(max(r.Len, 0), c.size-r.Off)
	return r
}

// each calls f with the words that r touches and the bits of r in them, until f returns
// false.
func (c *chunks) each(r Range, f func(word int, mask uint64) bool) {
	r = c.clip(r)
	if r.Len == 0 {
		return
	}
	first, last := r.Off>>c.shift, (r.Off+r.Len-1)>>c.shift
	for w := first / 64; w <= last/64; w++ {
		mask := ^uint64(0)
		if w == first/64 {
			mask &= ^uint64(0) << (first % 64)
		}
		if w == last/64 {
			mask &= ^uint64(0) >> (63 - last%64)
		}
		if !f(int(w), mask) {
			return
		}
	}
}

func (c *chunks) add(r Range) {
	c.each(r, func(w int, mask uint64) bool {
		if c.words[w].Load()&mask != mask {
			c.words[w].Or(mask)
		}
		return true
	})
}

// has reports whether a chunk that r touches is in the set.
func (c *chunks) has(r Range) (found bool) {
	c.each(r, func(w int, mask uint64) bool {
		found = c.words[w].Load()&mask != 0
		return !found
	})
	return found
}

// take removes the chunks that r touches, and adds those that were there to into.
func (c *chunks) take(r Range, into *chunks) {
	c.each(r, func(w int, mask uint64) bool {
		if c.words[w].Load()&mask != 0 {
			into.words[w].Or(c.words[w].And(^mask) & mask)
		}
		return true
	})
}

// moveAll removes everything, and adds it to into.
func (c *chunks) moveAll(into *chunks) {
	for w := range c.words {
		if c.words[w].Load() != 0 {
			into.words[w].Or(c.words[w].Swap(0))
		}
	}
}

// clear removes everything.
func (c *chunks) clear() {
	for w := range c.words {
		c.words[w].Store(0)
	}
}

// runs appends the runs of chunks of the set.
func (c *chunks) runs(dst []Range) []Range {
	for w := range c.words {
		for v := c.words[w].Load(); v != 0; {
			first := bits.TrailingZeros64(v)
			n := bits.TrailingZeros64(^(v >> first))
			dst = c.appendRun(dst, int64(w*64+first), int64(n))
			if first+n == 64 {
				break
			}
			v &= ^uint64(0) << (first + n)
		}
	}
	return dst
}

func (c *chunks) appendRun(dst []Range, first, n int64) []Range {
	off := first << c.shift
	octets := min(n<<c.shift, c.size-off) // off+n<<c.shift may be 1<<63
	if k := len(dst) - 1; k >= 0 && dst[k].end() == off {
		dst[k].Len += octets
		return dst
	}
	return append(dst, Range{off, octets})
}
