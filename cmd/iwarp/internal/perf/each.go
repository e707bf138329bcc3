package perf

import (
	"errors"
	"sync/atomic"
)

// each runs f for all of xs, at the same time if there are several, and returns
// their errors. It allocates a few objects, however many xs there are.
func each[T any](xs []T, f func(T) error) error {
	if len(xs) == 1 { // without a goroutine, which would have to be woken
		return f(xs[0])
	}
	results := make(chan error, len(xs))
	var next atomic.Int64
	one := func() { results <- f(xs[next.Add(1)-1]) }
	for range xs {
		go one()
	}
	var errs []error
	for range xs {
		if err := <-results; err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
