package recent

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheLatestAreKept(t *testing.T) {
	var l Log[int]
	require.Empty(t, l.List())
	for i := range 7 {
		l.Add(i, 3)
	}
	require.Equal(t, []int{4, 5, 6}, l.List())
}
