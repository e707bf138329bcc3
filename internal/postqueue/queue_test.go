package postqueue

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func post(t *testing.T, q *Queue[int], vs ...int) {
	t.Helper()
	require.True(t, q.LockIf(Open))
	defer q.Unlock()
	for _, v := range vs {
		*q.Next() = v
		q.Post()
	}
}

func take(t *testing.T, q *Queue[int], n int) (vs []int) {
	t.Helper()
	for len(vs) < n {
		posted := q.Posted()
		require.Positive(t, posted)
		seen := min(posted, n-len(vs))
		for k := range seen {
			vs = append(vs, *q.At(k))
		}
		q.Take(seen)
	}
	return vs
}

// TestOrderWhileTheRingGrows: entries in view stay there, and entries that were taken but not published keep their
// places.
func TestOrderWhileTheRingGrows(t *testing.T) {
	var q Queue[int]
	require.Zero(t, q.Posted())
	require.False(t, q.Waiting())
	post(t, &q, 1, 2, 3)
	require.Equal(t, 3, q.Posted())
	require.Equal(t, 3, *q.At(2))
	require.Equal(t, []int{1, 2}, take(t, &q, 2))
	post(t, &q, 4, 5, 6, 7, 8, 9, 10)
	require.Len(t, q.ring, 16)
	require.Equal(t, 1, q.Posted(), "what is in view is used up first")
	require.Equal(t, []int{3, 4, 5, 6, 7, 8, 9, 10}, take(t, &q, 8))
	require.True(t, q.Waiting(), "as far as the posters know")
	q.Publish()
	require.False(t, q.Waiting())
	require.Zero(t, q.Posted())
}

func TestPlacesAreUsedAgain(t *testing.T) {
	var q Queue[int]
	for i := range 10 * Initial {
		post(t, &q, i, -i)
		require.Equal(t, []int{i, -i}, take(t, &q, 2))
		q.Publish()
	}
	require.Len(t, q.ring, Initial)
}

// TestOnlyPlacesOfWhatWasTakenAreUsedAgain: waiting entries keep their places, and the queue grows when no place is
// free.
func TestOnlyPlacesOfWhatWasTakenAreUsedAgain(t *testing.T) {
	var q Queue[int]
	post(t, &q, 1, 2, 3, 4)
	require.Equal(t, []int{1, 2}, take(t, &q, 2))
	q.Publish()
	post(t, &q, 5, 6)
	require.Len(t, q.ring, 4, "two places are free")
	post(t, &q, 7)
	require.Len(t, q.ring, 8, "none is free")
	require.Equal(t, []int{3, 4, 5, 6, 7}, take(t, &q, 5))
}

// TestEntryThatIsNotPosted: Next returns the same entry again.
func TestEntryThatIsNotPosted(t *testing.T) {
	var q Queue[int]
	require.True(t, q.LockIf(Open))
	*q.Next() = 1
	q.Unlock()
	require.Zero(t, q.Posted())
	post(t, &q, 2)
	require.Equal(t, []int{2}, take(t, &q, 1))
}

func TestStateNeverGoesBack(t *testing.T) {
	var q Queue[int]
	post(t, &q, 1)
	calls := 0
	count := func() { calls++ }
	q.Advance(Refuses, nil)
	require.False(t, q.LockIf(Open))
	require.True(t, q.LockIf(Refuses))
	q.Unlock()
	require.False(t, q.HasEnded())
	q.Advance(Ended, count)
	q.Advance(Ended, count)
	q.Advance(Refuses, count)
	require.Equal(t, 1, calls)
	require.True(t, q.HasEnded())
	require.False(t, q.LockIf(Refuses))
	require.Equal(t, []int{1}, take(t, &q, 1), "what is left can be taken")
}

func TestPostersAndTheTaker(t *testing.T) {
	const posters, each = 4, 1000
	var q Queue[int]
	var all sync.WaitGroup
	for p := range posters {
		all.Go(func() {
			for i := range each {
				post(t, &q, p*each+i)
			}
		})
	}
	next := [posters]int{}
	for got := 0; got < posters*each; {
		for range q.Posted() {
			v := *q.At(0)
			q.Take(1)
			require.Equal(t, next[v/each], v%each, "each poster's are in order")
			next[v/each]++
			got++
		}
		q.Publish()
	}
	all.Wait()
}

func TestNothingIsAllocated(t *testing.T) {
	var q Queue[int]
	post(t, &q, 1)
	take(t, &q, 1)
	q.Publish()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if q.LockIf(Open) {
			*q.Next() = 1
			q.Post()
			q.Unlock()
		}
		q.Take(q.Posted())
		q.Publish()
	}))
}
