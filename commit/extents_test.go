package commit

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// wellFormed wants a set in order, of which no two ranges could be one.
func (e extents) wellFormed(t *testing.T) {
	t.Helper()
	require.LessOrEqual(t, len(e), maxExtents)
	for i, r := range e {
		require.Positive(t, r.Len)
		if i > 0 {
			require.Greater(t, r.Off, e[i-1].end())
		}
	}
}

// TestCMT_30_Extents compares the set with a plain one.
func TestCMT_30_Extents(t *testing.T) {
	const size = 200
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		var e, other extents
		var plain [size]bool
		for range 40 {
			r := Range{rnd.Int64N(size), rnd.Int64N(20)}
			r.Len = min(r.Len, size-r.Off)
			value := false
			switch rnd.IntN(4) {
			case 0, 1:
				e.add(r)
				value = true
			case 2:
				e.remove(r)
			default:
				other = extents{{0, r.Off + 1}, {r.Off + 3, size - r.Off - 3}}[:1+rnd.IntN(2)]
				e.addPart(other, r)
				for k := r.Off; k < r.end(); k++ {
					plain[k] = plain[k] || other.has(Range{k, 1})
				}
				r.Len = 0
			}
			for k := r.Off; k < r.end(); k++ {
				plain[k] = value
			}
			e.wellFormed(t)
			for k := range int64(size) {
				require.Equal(t, plain[k], e.has(Range{k, 1}), "octet %d of %v", k, e)
			}
			require.False(t, e.has(Range{r.Off, 0}), "nothing is nowhere")
			r = Range{rnd.Int64N(size), 1 + rnd.Int64N(20)}
			want := false
			for k := r.Off; k < min(r.end(), size); k++ {
				want = want || plain[k]
			}
			require.Equal(t, want, e.has(r))
		}
	}
}

// TestExtentsAreBounded: what there is no room for makes the set larger than it should be, where
// that costs least, and never smaller.
func TestExtentsAreBounded(t *testing.T) {
	var e extents
	for i := range int64(maxExtents) {
		e.add(Range{i * 100, 10})
	}
	e.add(Range{maxExtents * 100, 10})
	e.wellFormed(t)
	require.Equal(t, Range{(maxExtents - 1) * 100, 110}, e[maxExtents-1], "the last has no neighbour but one")
	e.add(Range{1015, 5})
	require.True(t, e.has(Range{1012, 1}), "what is nearer is joined")
	require.False(t, e.has(Range{1050, 1}))
	e.add(Range{2080, 15})
	require.True(t, e.has(Range{2097, 1}), "on either side")
	require.False(t, e.has(Range{2050, 1}))
	e.add(Range{-100, 1})
	e.wellFormed(t)
	require.True(t, e.has(Range{-50, 1}), "the first has no neighbour before it")

	before := append(extents(nil), e...)
	e.remove(Range{3003, 2})
	require.Equal(t, before, e, "there is no room for the two that would be left")
	e.remove(Range{3000, 2})
	require.False(t, e.has(Range{3000, 2}))
	require.True(t, e.has(Range{3002, 8}), "from its beginning on there is")
	e.remove(Range{3005, 5})
	require.Equal(t, Range{3002, 3}, e[e.from(3002)], "and from its end")
	e.remove(Range{3000, 100})
	e.remove(Range{4003, 2})
	require.False(t, e.has(Range{4003, 2}), "one less leaves room")
	require.True(t, e.has(Range{4002, 1}) && e.has(Range{4005, 5}))

	rnd := rand.New(rand.NewPCG(5, 6))
	var all extents
	for i := range 10 * maxExtents {
		r := Range{rnd.Int64N(1 << 40), 1 + rnd.Int64N(1<<20)}
		all.add(r)
		if i%maxExtents == 0 {
			all.wellFormed(t)
		}
		require.True(t, all.has(Range{r.Off, 1}) && all.has(Range{r.end() - 1, 1}))
	}
}
