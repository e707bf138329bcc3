package eldest

import (
	"sync/atomic"
	"testing"
	"time"

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

// TestWhatIsFinishedHasBeenGivenUpOrNot: it is not given up afterwards.
func TestWhatIsFinishedHasBeenGivenUpOrNot(t *testing.T) {
	var l List
	finished := make(chan bool, 1)
	var done func()
	var givenUp atomic.Bool
	done = l.Add(func() {
		go func() {
			done()
			finished <- givenUp.Load()
		}()
		select {
		case <-finished:
			t.Fatal("it is finished, and then given up")
		case <-time.After(20 * time.Millisecond):
		}
		givenUp.Store(true)
	})
	require.True(t, l.GiveUp())
	require.True(t, <-finished)
}
