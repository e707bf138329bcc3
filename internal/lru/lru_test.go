package lru

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// keys lists the keys, the most recently used one first.
func keys(m *Map[int, string]) []int {
	var all []int
	for k := range m.All() {
		all = append(all, k)
	}
	return all
}

func TestTheLeastRecentlyUsedEntryIsForgotten(t *testing.T) {
	m := New[int, string](3)
	require.False(t, m.Full())
	for k, v := range []string{"zero", "one", "two"} {
		m.Put(k, v)
	}
	require.True(t, m.Full())
	require.Equal(t, []int{2, 1, 0}, keys(m))

	v, ok := m.Get(0)
	require.True(t, ok)
	require.Equal(t, "zero", v)
	m.Put(2, "again two")
	require.Equal(t, 3, m.Len(), "an entry that is replaced takes no place")
	require.Equal(t, []int{2, 0, 1}, keys(m))
	k, v := m.Oldest()
	require.Equal(t, 1, k)
	require.Equal(t, "one", v)

	m.Put(3, "three")
	require.Equal(t, []int{3, 2, 0}, keys(m))
	_, ok = m.Get(1)
	require.False(t, ok)
	v, _ = m.Get(2)
	require.Equal(t, "again two", v)
}

func TestEntriesAreDeleted(t *testing.T) {
	m := New[int, string](5)
	for k := range 5 {
		m.Put(k, "x")
	}
	m.Delete(7)
	m.Delete(2)
	require.Equal(t, []int{4, 3, 1, 0}, keys(m))
	require.False(t, m.Full())
	for k := range m.All() {
		if k%2 == 1 {
			m.Delete(k)
		}
	}
	require.Equal(t, []int{4, 0}, keys(m))
	for range m.All() {
		break
	}
}

// TestRandomCallsAgreeWithAList compares the Map with a plain list.
func TestRandomCallsAgreeWithAList(t *testing.T) {
	const most = 8
	rnd := rand.New(rand.NewPCG(1, 2))
	m := New[int, string](most)
	var want []int
	for range 10000 {
		k := rnd.IntN(20)
		at := slices.Index(want, k)
		switch rnd.IntN(3) {
		case 0:
			_, found := m.Get(k)
			require.Equal(t, at >= 0, found)
			if !found {
				continue
			}
		case 1:
			m.Put(k, "x")
		case 2:
			m.Delete(k)
			if at >= 0 {
				want = slices.Delete(want, at, at+1)
			}
			continue
		}
		if at >= 0 {
			want = slices.Delete(want, at, at+1)
		}
		want = slices.Insert(want, 0, k)
		want = want[:min(len(want), most)]
		require.Equal(t, want, keys(m))
		require.Equal(t, len(want), m.Len())
	}
}
