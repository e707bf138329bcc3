// Package stats takes times, and computes medians, quantiles and Jain's fairness index, for the measurements of cmd/iwarp.
package stats

import (
	"cmp"
	"slices"
	"time"
)

// Times calls op for 0 up to n-1, and appends the nanoseconds that each call took, up to the first call that fails.
func Times(n int, times []int64, op func(i int) error) ([]int64, error) {
	last := time.Now()
	for i := range n {
		if err := op(i); err != nil {
			return times, err
		}
		now := time.Now()
		times = append(times, int64(now.Sub(last)))
		last = now
	}
	return times, nil
}

// Median returns the median of xs, or 0 if xs is empty. It
// sorts xs.
func Median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	slices.Sort(xs)
	n := len(xs)
	return (xs[(n-1)/2] + xs[n/2]) / 2
}

// Quantile sorts values, which must not be empty, and returns the least one that percent of them, from 0 to 100, do not exceed.
func Quantile[T cmp.Ordered](values []T, percent int) T {
	slices.Sort(values)
	rank := (len(values)*percent + 99) / 100
	return values[max(rank-1, 0)]
}

// Jain returns the index of fairness of shares: 1 if all are equal, 1/n if one of n has everything.
func Jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}
