package kv

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRememberedValue: one read returns the remembered value while it is the key's value, but not while the key is being
// changed, nor later, although the octets may still be there.
func TestRememberedValue(t *testing.T) {
	table, err := newTable("a", smallShape)
	require.NoError(t, err)
	where := newLocations(10)
	get := func(key string) (v Verdict, value string, reads int) {
		var l Lookup
		v = ReadMore
		off, n := where.begin(&l, table.shape, []byte(key))
		for v == ReadMore {
			reads++
			b := make([]byte, n)
			_, err := table.memory.ReadAt(b, int64(off))
			require.NoError(t, err)
			v, off, n = l.Next(b)
		}
		where.ended(&l, v)
		return v, string(l.Value()), reads
	}
	expect := func(verdict Verdict, value string, reads int) {
		t.Helper()
		v, got, n := get("a")
		require.Equal(t, verdict, v)
		require.Equal(t, reads, n)
		if v == Found {
			require.Equal(t, value, got)
		}
	}
	require.NoError(t, table.store(1, "a", "one"))
	expect(Found, "one", 2)
	expect(Found, "one", 1)
	require.NoError(t, table.store(2, "a", "two"))
	expect(Stale, "", 1)
	expect(Found, "two", 2)
	expect(Found, "two", 1)

	it := table.items["a"]
	table.begin(it)
	expect(Stale, "", 1)
	expect(Busy, "", 1)
	table.undo(it)
	expect(Found, "two", 2)
	expect(Found, "two", 1)

	table.remove(3, "a")
	expect(Stale, "", 1)
	expect(Absent, "", 1)
	require.NoError(t, table.store(4, "a", "three"))
	expect(Found, "three", 2)

	// Only so many keys are remembered, and nothing beyond the memory is read.
	for i := range 30 {
		require.NoError(t, table.store(uint64(10+i), keyOf(i), "v"))
		v, _, _ := get(keyOf(i))
		require.Equal(t, Found, v)
	}
	require.Len(t, where.at, 10)
	where.at["a"] = Entry{entry{block: 1 << 30, length: 100}}
	expect(Found, "three", 2)
}
