package commit

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// wellFormed checks that a set is in order, and that no two ranges could be one.
func (o *octetSet) wellFormed(t *testing.T) {
	t.Helper()
	require.LessOrEqual(t, len(o.exact), maxExtents)
	require.LessOrEqual(t, len(o.pages), maxZones)
	for i, r := range o.exact {
		require.Positive(t, r.Len)
		if i > 0 {
			require.Greater(t, r.Off, o.exact[i-1].end())
		}
	}
	for z, set := range o.pages {
		require.NotZero(t, set, "zone %d", z)
	}
}

// parts returns the parts of r that each visits.
func (o *octetSet) parts(r Range) (all extents) {
	o.each(r, func(part Range) { all.add(part) })
	return all
}

// TestCMT_30_Extents compares the set with a plain one.
func TestCMT_30_Extents(t *testing.T) {
	const size = 200
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		var o, other octetSet
		var plain [size]bool
		for range 40 {
			r := Range{rnd.Int64N(size), rnd.Int64N(20)}
			r.Len = min(r.Len, size-r.Off)
			value := false
			switch rnd.IntN(4) {
			case 0, 1:
				o.add(r)
				value = true
			case 2:
				o.remove(r)
			default:
				other.exact = extents{{0, r.Off + 1}, {r.Off + 3, size - r.Off - 3}}[:1+rnd.IntN(2)]
				other.each(r, o.add)
				for k := r.Off; k < r.end(); k++ {
					plain[k] = plain[k] || other.has(Range{k, 1})
				}
				r.Len = 0
			}
			for k := r.Off; k < r.end(); k++ {
				plain[k] = value
			}
			o.wellFormed(t)
			for k := range int64(size) {
				require.Equal(t, plain[k], o.has(Range{k, 1}), "octet %d of %v", k, o)
			}
			require.False(t, o.has(Range{r.Off, 0}), "nothing is nowhere")
			r = Range{rnd.Int64N(size), 1 + rnd.Int64N(20)}
			want := false
			for k := r.Off; k < min(r.end(), size); k++ {
				want = want || plain[k]
			}
			require.Equal(t, want, o.has(r))
		}
	}
}

// A plain set has a bool for each cell of some octets.
type plain struct {
	cell  int64
	cells []bool
}

func (p *plain) random(rnd *rand.Rand, most int64) Range {
	n := int64(len(p.cells))
	off := rnd.Int64N(n)
	return Range{off * p.cell, min(1+rnd.Int64N(most), n-off) * p.cell}
}

func (p *plain) set(r Range, value bool) {
	for k := r.Off / p.cell; k < r.end()/p.cell; k++ {
		p.cells[k] = value
	}
}

// TestCMT_30_WholePagesAreExact, however many and in whatever order they come and go.
func TestCMT_30_WholePagesAreExact(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for _, size := range []int64{page, 8 * page} {
		p := plain{size, make([]bool, 1<<14)}
		var o octetSet
		for i := range 30000 {
			r, value := p.random(rnd, 3), rnd.IntN(2) == 0
			p.set(r, value)
			if value {
				o.add(r)
			} else {
				o.remove(r)
			}
			if i%3000 > 0 {
				continue
			}
			o.wellFormed(t)
			all := o.parts(everything)
			for k, want := range p.cells {
				cell := Range{int64(k) * p.cell, p.cell}
				if o.has(cell) != want || all.has(cell) != want {
					require.Failf(t, "not exact", "cell %d should be %t", k, want)
				}
			}
			r = p.random(rnd, 500)
			r.Off++
			r.Len -= 2
			want := all
			want.remove(Range{0, r.Off})
			want.remove(Range{r.end(), math.MaxInt64})
			require.ElementsMatch(t, want, o.parts(r))
		}
		require.NotEmpty(t, o.pages)
		o.remove(everything)
		require.Equal(t, octetSet{exact: o.exact[:0], hand: o.hand}, o)
	}
}

// TestCMT_30_OctetSetModel: without room for all parts, the set may hold too many octets of the pages of which it
// holds a part; never too few, and none of other pages.
func TestCMT_30_OctetSetModel(t *testing.T) {
	const cell = 64
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		p := plain{cell, make([]bool, 1<<16)}
		touched := plain{page, make([]bool, len(p.cells)*cell/page)} // added to since they were removed as a whole
		var o octetSet
		for i := range 20000 {
			r := p.random(rnd, 3)
			if seed%2 == 1 && rnd.IntN(100) == 0 {
				r = p.random(rnd, 500)
			}
			if rnd.IntN(2) == 0 {
				o.add(r)
				p.set(r, true)
				touched.set(Range{r.Off, r.pages().end() - r.Off}, true)
			} else {
				o.remove(r)
				p.set(r, false)
				if first := (r.Off + page - 1) / page; first < r.end()/page {
					touched.set(Range{first * page, (r.end()/page - first) * page}, false)
				}
			}
			if i%1999 > 0 {
				continue
			}
			o.wellFormed(t)
			all := o.parts(everything)
			for k, in := range p.cells {
				c := Range{int64(k) * cell, cell}
				if has := o.has(c); has != all.has(c) || in && !has || has && !touched.cells[k*cell/page] {
					require.Failf(t, "wrong", "seed %d, time %d: cell %d is %t and should be %t", seed, i, k, has, in)
				}
			}
		}
		require.NotEmpty(t, o.pages)
	}
}

// TestOctetSetIsBounded: without room even for pages the set becomes larger, where that costs least, and never
// smaller.
func TestOctetSetIsBounded(t *testing.T) {
	const far = 1 << zoneShift
	var o octetSet
	o.add(Range{1, math.MaxInt64}) // more pages than there is room for
	o.remove(Range{7, 1 << 40})
	n := int64(maxZones + maxExtents)
	for i := range n {
		o.add(Range{i*far + 10, 100})
	}
	o.wellFormed(t)
	require.Len(t, o.pages, maxZones)
	for i := range n {
		require.True(t, o.has(Range{i*far + 10, 1}) && o.has(Range{i*far + 109, 1}))
	}
	for i := n; i < n+100; i++ {
		o.add(Range{i*far + 10, 100})
	}
	o.wellFormed(t)
	require.True(t, o.has(Range{1, 1}))
	require.Equal(t, int64(math.MaxInt64), o.exact[len(o.exact)-1].end())
	for i := range n + 100 {
		require.True(t, o.has(Range{i*far + 10, 100}))
	}
	for off := int64(0); off < 1<<40; off += 1 << 30 {
		o.remove(Range{off, 1 << 30})
		require.False(t, o.has(Range{off, 1 << 30}), "it is removed all the same")
	}
	require.Nil(t, o.pages)

	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range 10 * maxExtents {
		r := Range{rnd.Int64N(1 << 40), 1 + rnd.Int64N(1<<20)}
		o.add(r)
		if i%maxExtents == 0 {
			o.wellFormed(t)
		}
		require.True(t, o.has(Range{r.Off, 1}) && o.has(Range{r.end() - 1, 1}))
	}
}

// TestExtentsJoin: the two ranges with the least between them become one.
func TestExtentsJoin(t *testing.T) {
	all := extents{{0, 10}, {100, 10}, {130, 10}, {200, 10}}
	for i, want := range []extents{
		{{0, 110}, {130, 10}, {200, 10}},
		{{0, 10}, {100, 40}, {200, 10}},
		{{0, 10}, {100, 40}, {200, 10}},
		{{0, 10}, {100, 10}, {130, 80}},
	} {
		e := append(extents(nil), all...)
		e.join(i)
		require.Equal(t, want, e)
	}
}
