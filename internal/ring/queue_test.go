package ring

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func push(q *Queue[int], vs ...int) {
	for _, v := range vs {
		*q.Next(2) = v
		q.Push()
	}
}

func TestQueueKeepsTheOrder(t *testing.T) {
	var q Queue[int]
	push(&q, 1, 2)
	require.Equal(t, 1, *q.Take())
	push(&q, 3, 4, 5)
	require.Equal(t, 4, q.Places())
	require.Equal(t, 4, q.Len())
	require.EqualValues(t, 5, q.End)
	require.EqualValues(t, 1, q.Oldest)
	dst := make([]int, 3)
	require.Equal(t, 3, q.Move(dst))
	require.Equal(t, []int{2, 3, 4}, dst)
	require.EqualValues(t, 4, q.Oldest)
	require.Equal(t, 1, q.Move(dst))
	require.Equal(t, 5, dst[0])
	require.Zero(t, q.End, "the numbers begin again")
	require.Zero(t, *q.Next(2), "nothing is left in a place")
	require.Zero(t, q.Move(dst))
}

func TestQueueGivesMemoryBack(t *testing.T) {
	var q Queue[int]
	push(&q, 1, 2, 3, 4, 5)
	require.Equal(t, 8, q.Places())
	q.Take()
	q.Take()
	q.Take()
	q.Fit(4)
	require.Equal(t, 8, q.Places())
	q.Fit(2)
	require.Equal(t, 2, q.Places())
	require.Equal(t, 4, *q.Take())
	q.Drop()
	require.Zero(t, q.Len())
	require.Zero(t, q.Places())
	require.EqualValues(t, 5, q.Oldest)
}
