package eldest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOldestIsGivenUpFirst(t *testing.T) {
	var l List
	var given []int
	begin := func(i int) func() { return l.Add(func() { given = append(given, i) }) }
	require.False(t, l.GiveUp(), "nothing is under way")
	first, second := begin(1), begin(2)
	begin(3)
	second()
	second()
	require.Equal(t, 2, l.Len(), "what is finished is not there any more")
	require.True(t, l.GiveUp())
	first()
	require.Equal(t, 1, l.Len(), "what was given up is not there either")
	require.True(t, l.GiveUp())
	require.False(t, l.GiveUp())
	require.Equal(t, []int{1, 3}, given)
}
