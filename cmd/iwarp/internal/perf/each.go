package perf

import "errors"

// each runs f for all of xs, at the same time if there are several, and returns
// their errors.
func each[T any](xs []T, f func(T) error) error {
	if len(xs) == 1 { // no goroutine, which would have to be woken
		return f(xs[0])
	}
	results := make(chan error, len(xs))
	for _, x := range xs {
		go func() { results <- f(x) }()
	}
	var errs []error
	for range xs {
		errs = append(errs, <-results)
	}
	return errors.Join(errs...)
}
