// Package contest compares ways of doing something by running them in turn.
package contest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
)

// A Contest says how contenders are compared.
type Contest struct {
	Pairs int           // how often they take turns
	Span  time.Duration // about how long a run takes
	// Usage returns what all processes that take part have used.
	Usage func() (peer.Usage, error)
}

// A Contender is one side of a comparison, connected.
type Contender struct {
	Name string
	Size int               // octets of an operation
	Run  func(n int) error // does n operations

	n       int // operations of a run
	Samples []Sample
}

// A Sample is one run of a contender.
type Sample struct {
	Ops     int
	Octets  int
	Elapsed time.Duration
	Used    peer.Usage // by all processes
}

// PerCore returns the octets per second of processor time.
func PerCore(s *Sample) float64 { return float64(s.Octets) / max(s.Used.CPU.Seconds(), 1e-9) }

// Rate returns the octets per second.
func Rate(s *Sample) float64 { return float64(s.Octets) / s.Elapsed.Seconds() }

// PerSecond returns the operations per second.
func PerSecond(s *Sample) float64 { return float64(s.Ops) / s.Elapsed.Seconds() }

// Allocs returns the allocations per operation.
func Allocs(s *Sample) float64 { return float64(s.Used.Mallocs) / float64(s.Ops) }

// Cost returns the processor time per operation, in microseconds.
func Cost(s *Sample) float64 { return s.Used.CPU.Seconds() * 1e6 / float64(s.Ops) }

// Median returns the median of a value of the samples.
func (c *Contender) Median(value func(*Sample) float64) float64 {
	var all []float64
	for i := range c.Samples {
		all = append(all, value(&c.Samples[i]))
	}
	return stats.Median(all)
}

// Least returns the least value of the samples.
func (c *Contender) Least(value func(*Sample) float64) float64 {
	least := math.Inf(1)
	for i := range c.Samples {
		least = min(least, value(&c.Samples[i]))
	}
	return least
}

// Against returns the median of the ratios of pairs.
func (c *Contender) Against(base *Contender, value func(*Sample) float64) float64 {
	var all []float64
	for i := range c.Samples {
		all = append(all, value(&c.Samples[i])/value(&base.Samples[i]))
	}
	return stats.Median(all)
}

// String returns the medians as text.
func (c *Contender) String() string {
	return fmt.Sprintf("%s: %.2f GB/s, %.2f us of the processors for an operation, %.2f allocations",
		c.Name, c.Median(Rate)/1e9, c.Median(Cost), c.Median(Allocs))
}

// warm finds how many operations take about as long as a run, twice in a row: a single run may have
// been delayed, as the first on a connection often is.
func (x *Contest) warm(c *Contender) error {
	c.n = max(c.n, 1)
	for long := 0; long < 2; {
		began := time.Now()
		if err := c.Run(c.n); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		took := time.Since(began)
		if took < x.Span/2 {
			c.n *= 2
			long = 0
			continue
		}
		c.n = max(int(float64(c.n)*x.Span.Seconds()/took.Seconds()), 1)
		long++
	}
	return nil
}

// wakePart is the divisor for the part of a run that precedes it and does not count: the connection has been idle.
const wakePart = 20

// take takes one sample of a contender.
func (x *Contest) take(c *Contender) error {
	if err := c.Run(max(c.n/wakePart, 1)); err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	before, err := x.Usage()
	if err != nil {
		return err
	}
	began := time.Now()
	err = c.Run(c.n)
	s := Sample{Ops: c.n, Octets: c.n * c.Size, Elapsed: time.Since(began)}
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	after, err := x.Usage()
	if err != nil {
		return err
	}
	s.Used = after.Minus(before)
	c.Samples = append(c.Samples, s)
	return nil
}

// Compare takes samples of contenders in turn.
func (x *Contest) Compare(all ...*Contender) error {
	for _, c := range all {
		if err := x.warm(c); err != nil {
			return err
		}
	}
	for range x.Pairs {
		for _, c := range all {
			if err := x.take(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// Ends are functions that close what was opened for a measurement, in reverse order.
type Ends []func() error

// Close calls all of them.
func (e Ends) Close() error {
	errs := make([]error, 0, len(e))
	for _, end := range slices.Backward(e) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}
