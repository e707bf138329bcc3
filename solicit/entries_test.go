package solicit

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestLargestOfThoseInTheHeap compares the heap with a search.
func TestLargestOfThoseInTheHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table table
		table.init()
		var h bySize
		in := make(map[uint32]bool)
		for range 200 {
			if rapid.Bool().Draw(t, "add") {
				i := table.take()
				table.at(i).n = rapid.Int64Range(1, 20).Draw(t, "n")
				table.add(&h, i)
				in[i] = true
			} else if len(table.entries) > 1 {
				i := uint32(rapid.IntRange(1, len(table.entries)-1).Draw(t, "i"))
				table.drop(&h, i)
				if in[i] {
					delete(in, i)
					table.give(i)
				}
			}
			var want int64
			for i := range in {
				want = max(want, table.at(i).n)
			}
			require.Equal(t, want, table.largest(h))
			require.Len(t, h, len(in))
		}
	})
}
