package rmaperf

import "errors"

// A severalArm runs several arms at a time.
type severalArm []arm

// run does n operations of each.
func (a severalArm) run(n int) error {
	errs := make(chan error, len(a))
	for _, one := range a {
		go func() { errs <- one.run(n) }()
	}
	var all error
	for range a {
		all = errors.Join(all, <-errs)
	}
	return all
}

// close does nothing: the arms are closed by themselves.
func (a severalArm) close() error { return nil }

// A pinnedArm runs both processes on so many processors.
type pinnedArm struct {
	arm

	b     *bench
	cores int
}

func (a *pinnedArm) run(n int) error {
	return errors.Join(a.b.useCores(a.cores), a.arm.run(n))
}

// useCores tells both processes on how many processors they run.
func (b *bench) useCores(n int) error {
	if b.remote == nil {
		return nil // the server process could not be started
	}
	_, err := b.remote.do(order{Do: doCores, Cores: n})
	return errors.Join(err, useCores(n))
}

// cores holds the rate of sealed reads of 1 MiB on two QPs where both processes have two processors against the same
// connections where client and server share one processor, with GOMAXPROCS=1 each. So it is the same work of the
// same host, and the ratio tells how much of it is done in parallel: sealing at the server, opening at the client, and
// what the two connections do at a time. A client and a server of one processor each would hide that, for they are two
// already.
func (b *bench) cores() (err error) {
	s := &stand{b: b}
	defer func() { err = errors.Join(err, b.useCores(0), s.close()) }()
	var both severalArm
	for range 2 {
		c, err := s.rma(true, directRead, inFlight/maxOp/2, maxOp)
		if err != nil {
			return err
		}
		both = append(both, c.arm)
	}
	one := &contender{name: "two reads of 64 KiB, one on each QP, suite 1, one processor", size: 2 * maxOp, arm: &pinnedArm{both, b, 1}}
	two := &contender{name: "two reads of 64 KiB, one on each QP, suite 1, two processors", size: 2 * maxOp, arm: &pinnedArm{both, b, 2}}
	if err := b.compare(one, two); err != nil {
		return err
	}
	b.marks.Least("1 MiB sealed reads on 2 QPs, 2 cores against 1", two.against(one, rateOf), 1.7)
	return nil
}
