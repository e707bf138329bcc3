package arch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/arch/measure"
)

// The words stand in testdata/words.txt; how a pattern is written is in the documentation of
// measure.ParseWord.
func TestWordsThatAreNotToBeUsed(t *testing.T) {
	texts, err := measure.Texts(root, tree(t))
	require.NoError(t, err)
	holdRecord(t, "words.txt", func(r *record) map[string]float64 {
		now := make(map[string]float64)
		for what := range r.values {
			w, err := measure.ParseWord(what)
			require.NoError(t, err, what)
			now[what] = 0
			for _, text := range texts {
				now[what] += float64(len(w.Find(text)))
			}
			if now[what] > r.values[what] {
				t.Logf("the places: go run ./internal/arch/shape -word '%s'", what)
			}
		}
		return now
	})
}
