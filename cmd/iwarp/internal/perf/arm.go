package perf

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// An arm is one side of a comparison, prepared and warm.
type arm struct {
	w       workload
	d       driver
	r       *remote
	service int
	meter   peer.Meter
	n       int     // operations of a run, on each connection that is used
	times   []int64 // buffer for the times of a run
}

// maxTimes bounds the buffer for the times of one run.
const maxTimes = 1 << 20

// openArm connects the two ends of a workload and warms them up for runs that take
// about span.
func openArm(r *remote, w workload, span time.Duration) (*arm, error) {
	w = w.filled()
	if err := w.check(); err != nil {
		return nil, err
	}
	k, err := kindOf(w.Kind)
	if err != nil {
		return nil, err
	}
	a := &arm{w: w, r: r, n: 1}
	opened, err := r.do(request{Open: &w})
	if err != nil {
		return nil, err
	}
	a.service = opened.Service
	if a.d, err = k.dial(r.addr(opened.Port), w); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", w.Kind, cli.OfConnection(err)), a.close())
	}
	if err := a.warm(span); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// warm runs more and more operations until two runs in a row take about span:
// a single run may have been delayed, as the first on a connection often is.
func (a *arm) warm(span time.Duration) error {
	for long := 0; long < 2; {
		start := time.Now()
		if err := a.exec(a.n); err != nil {
			return err
		}
		took := time.Since(start)
		if took < span/2 {
			a.n *= 2
			long = 0
			continue
		}
		a.n = max(int(float64(a.n)*span.Seconds()/took.Seconds()), 1)
		long++
	}
	if a.w.Latency {
		a.n = min(a.n, maxTimes)
		a.times = make([]int64, 0, a.n)
	}
	return nil
}

// wakePart is the divisor for the part of a run that precedes it and does not count: the
// connection has been idle while the other arm ran.
const wakePart = 20

// run does one run.
func (a *arm) run() (*sample, error) {
	if err := a.exec(max(a.n/wakePart, 1)); err != nil {
		return nil, err
	}
	a.times = a.times[:0]
	s := &sample{ops: a.w.operations(a.n), octets: a.w.octets(a.n)} // before the allocations are counted
	before, err := a.usage()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := a.exec(a.n); err != nil {
		return nil, err
	}
	s.elapsed = time.Since(start)
	after, err := a.usage()
	if err != nil {
		return nil, err
	}
	s.used = after.Minus(before)
	if a.w.Latency {
		s.times = slices.Clone(a.times)
		slices.Sort(s.times)
	}
	return s, nil
}

// exec does n operations on each connection.
func (a *arm) exec(n int) error {
	if !a.w.Duplex {
		var err error
		a.times, err = a.d.run(n, a.times)
		return cli.OfConnection(err)
	}
	theirs := make(chan error, 1)
	go func() {
		_, err := a.r.do(request{Run: &runOrder{Service: a.service, N: n}})
		theirs <- err
	}()
	_, err := a.d.run(n, nil)
	return errors.Join(cli.OfConnection(err), <-theirs)
}

// usage returns the usage of both processes.
func (a *arm) usage() (peer.Usage, error) {
	theirs, err := a.r.usage()
	return a.meter.Read().Plus(theirs), err
}

func (a *arm) close() error {
	var err error
	if a.d != nil {
		err = a.d.close()
	}
	if a.service != 0 {
		_, rerr := a.r.do(request{Close: a.service})
		err = errors.Join(err, rerr)
	}
	return err
}
