package rmaperf

import (
	"errors"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
)

// several runs several things at a time, n operations of each.
func several(all []func(n int) error) func(n int) error {
	return func(n int) error {
		errs := make(chan error, len(all))
		for _, run := range all {
			go func() { errs <- run(n) }()
		}
		var failed error
		for range all {
			failed = errors.Join(failed, <-errs)
		}
		return failed
	}
}

// pinned returns a function that calls run with both processes on a number of processors.
func (b *bench) pinned(cores int, run func(n int) error) func(n int) error {
	return func(n int) error { return errors.Join(b.useCores(cores), run(n)) }
}

// useCores sets the number of processors on which both processes run.
func (b *bench) useCores(n int) error {
	_, err := b.do(order{Do: doCores, Cores: n})
	return errors.Join(err, useCores(n))
}

// cores compares the rate of sealed reads of 1 MiB on two QPs when both processes have two processors with the rate of the same
// connections when client and server share one processor, with GOMAXPROCS=1 each. It is the same work on the
// same host, so the ratio shows how much of it is done in parallel: sealing at the server, opening at the client, and
// the work of the two connections. A client and a server with one processor each would hide that, because they already
// have two together.
func (b *bench) cores() (err error) {
	s := &stand{b: b}
	defer func() { err = errors.Join(err, b.useCores(0), s.close()) }()
	var both []func(n int) error
	for range 2 {
		c, err := s.rma(true, directRead, inFlight/maxOp/2, maxOp)
		if err != nil {
			return err
		}
		both = append(both, c.Run)
	}
	one := &contest.Contender{Name: "two reads of 64 KiB, one on each QP, suite 1, one processor", Size: 2 * maxOp, Run: b.pinned(1, several(both))}
	two := &contest.Contender{Name: "two reads of 64 KiB, one on each QP, suite 1, two processors", Size: 2 * maxOp, Run: b.pinned(2, several(both))}
	if err := b.compare(one, two); err != nil {
		return err
	}
	b.Marks.Least("1 MiB sealed reads on 2 QPs, 2 cores against 1", two.Against(one, contest.Rate), 1.7)
	return nil
}
