package rmaperf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
)

// A bench takes the measurements of one run of the command.
type bench struct {
	opts   *options
	ctx    context.Context
	stderr io.Writer
	marks  marks.List
	notes  []string

	child  *peer.Child // the server process; nil: none was needed yet
	remote *remote
	meter  peer.Meter
}

func (b *bench) note(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

// start starts the server process.
func (b *bench) start() (err error) {
	if b.child != nil {
		return nil
	}
	args := []string{"perf", "rma", "-s"}
	if b.opts.profile != "" {
		args = append(args, "-cpuprofile", b.opts.profile+".server")
	}
	if b.child, err = peer.Start(b.ctx, b.stderr, args...); err != nil {
		return err
	}
	b.remote, err = newRemote(b.child.Addr)
	return err
}

func (b *bench) close() (err error) {
	if b.remote != nil {
		err = b.remote.c.Close()
	}
	if b.child != nil {
		err = errors.Join(err, b.child.Stop())
	}
	return err
}

// open opens a service in the server process. The caller calls closed when it is not needed any more.
func (b *bench) open(what *service) (a reply, closed func(), err error) {
	if err := b.start(); err != nil {
		return a, nil, err
	}
	a, err = b.remote.do(order{Do: doOpen, Open: what})
	return a, func() { _, _ = b.remote.do(order{Do: doClose, Service: a.Service}) }, err
}

// An arm is one side of a comparison, connected.
type arm interface {
	run(n int) error // does n operations
	close() error
}

// A contender is an arm with what is to be known of it.
type contender struct {
	arm
	name string
	size int // octets of an operation

	n       int // operations of a run
	samples []sample
}

// A sample is one run of a contender.
type sample struct {
	ops     int
	octets  int
	elapsed time.Duration
	used    peer.Usage // by both processes
}

// Values of a sample.
func perCoreOf(s *sample) float64 { return float64(s.octets) / max(s.used.CPU.Seconds(), 1e-9) }
func rateOf(s *sample) float64    { return float64(s.octets) / s.elapsed.Seconds() }
func allocsOf(s *sample) float64  { return float64(s.used.Mallocs) / float64(s.ops) }
func costOf(s *sample) float64    { return s.used.CPU.Seconds() * 1e6 / float64(s.ops) }

func (c *contender) median(value func(*sample) float64) float64 {
	var all []float64
	for i := range c.samples {
		all = append(all, value(&c.samples[i]))
	}
	return stats.Median(all)
}

// against is the median of the ratios of pairs.
func (c *contender) against(base *contender, value func(*sample) float64) float64 {
	var all []float64
	for i := range c.samples {
		all = append(all, value(&c.samples[i])/value(&base.samples[i]))
	}
	return stats.Median(all)
}

// warm finds how many operations take about as long as a block, twice in a row: a single run may have
// been held up, as the first on a connection often is.
func (b *bench) warm(c *contender) error {
	c.n = max(c.n, 1)
	for long := 0; long < 2; {
		began := time.Now()
		if err := c.run(c.n); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		took := time.Since(began)
		if took < b.opts.span/2 {
			c.n *= 2
			long = 0
			continue
		}
		c.n = max(int(float64(c.n)*b.opts.span.Seconds()/took.Seconds()), 1)
		long++
	}
	return nil
}

// wakePart is which part of a run goes ahead of it and does not count: the connection has been idle.
const wakePart = 20

// take takes one sample of a contender.
func (b *bench) take(c *contender) error {
	if err := c.run(max(c.n/wakePart, 1)); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	before, err := b.usage()
	if err != nil {
		return err
	}
	began := time.Now()
	err = c.run(c.n)
	s := sample{ops: c.n, octets: c.n * c.size, elapsed: time.Since(began)}
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	after, err := b.usage()
	if err != nil {
		return err
	}
	s.used = after.Minus(before)
	c.samples = append(c.samples, s)
	return nil
}

// usage is that of both processes.
func (b *bench) usage() (peer.Usage, error) {
	theirs, err := b.remote.usage()
	return b.meter.Read().Plus(theirs), err
}

// compare takes samples of contenders in turn.
func (b *bench) compare(all ...*contender) error {
	for _, c := range all {
		if err := b.warm(c); err != nil {
			return err
		}
	}
	for range b.opts.pairs {
		for _, c := range all {
			if err := b.take(c); err != nil {
				return err
			}
		}
	}
	for _, c := range all {
		b.note("%s: %.2f GB/s, %.2f us of the processors for an operation, %.2f allocations",
			c.name, c.median(rateOf)/1e9, c.median(costOf), c.median(allocsOf))
	}
	return nil
}
