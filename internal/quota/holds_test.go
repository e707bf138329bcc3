package quota

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHoldsAreTakenTogether(t *testing.T) {
	errTaken := errors.New("taken")
	for fails := range 4 {
		var steps []string
		var h Holds[int]
		for i := range 3 {
			h = append(h, Hold[int]{
				Take: func(int) error {
					if i == fails {
						return errTaken
					}
					steps = append(steps, fmt.Sprint("take ", i))
					return nil
				},
				Give: func(int) { steps = append(steps, fmt.Sprint("give ", i)) },
			})
		}
		err := h.Take(0)
		if fails == 3 {
			require.NoError(t, err)
			h.Give(0)
		} else {
			require.ErrorIs(t, err, errTaken)
		}
		var want []string
		for i := range min(fails, 3) {
			want = append(want, fmt.Sprint("take ", i))
		}
		for i := min(fails, 3) - 1; i >= 0; i-- {
			want = append(want, fmt.Sprint("give ", i))
		}
		require.Equal(t, want, steps)
	}
}

func TestWithin(t *testing.T) {
	errLimit := errors.New("limit")
	value := func(v int) (int, error) {
		err := Within(errLimit, []Range{{Name: "A", Value: new(int), Default: 1, Most: 1}, {Name: "B", Value: &v, Default: 16, Least: -1, Most: 20}})
		return v, err
	}
	for v, want := range map[int]int{0: 16, -1: -1, 20: 20} {
		got, err := value(v)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := value(21)
	require.ErrorIs(t, err, errLimit)
	require.EqualError(t, err, "limit: B is 21, at most 20")
	_, err = value(-2)
	require.EqualError(t, err, "iwarp: B is -2, less than -1")
	small := 0
	require.NoError(t, Within(errLimit, []Range{{Value: &small, Default: 16, Most: 4}}))
	require.Equal(t, 4, small, "the default is lowered")
}
