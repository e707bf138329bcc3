package mailbox

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBox: items that do not fit are dropped and counted. Items that are in the box when it closes can still be read,
// even by a reader that asks for the channel only afterwards.
func TestBox(t *testing.T) {
	b := New[int](2)
	for i := range 3 {
		b.Put(i)
	}
	require.EqualValues(t, 1, b.Dropped())
	ch := b.Channel()
	b.Close()
	require.Equal(t, 0, <-ch)
	require.Equal(t, 1, <-b.Channel())
	_, open := <-ch
	require.False(t, open)
	_, open = <-b.Channel()
	require.False(t, open)
	b.Put(3)
	require.EqualValues(t, 2, b.Dropped())
}
