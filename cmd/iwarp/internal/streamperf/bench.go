package streamperf

import (
	"context"
	"errors"
	"io"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// A bench takes the measurements of one run of the command.
type bench struct {
	marks.Report

	opts   *options
	ctx    context.Context
	stderr io.Writer
	remote peer.Remote // the server process
}

// compare takes samples of contenders in turn. usage is a method of b.remote.
func (b *bench) compare(usage func() (peer.Usage, error), all ...*contest.Contender) error {
	x := &contest.Contest{Pairs: b.opts.Pairs, Span: b.opts.Span, Usage: usage}
	if err := x.Compare(all...); err != nil {
		return err
	}
	for _, c := range all {
		b.Note("%s: %.0f/s, %.2f GB/s, %.2f us of the processors for an operation, %.2f allocations",
			c.Name, c.Median(contest.PerSecond), c.Median(contest.Rate)/1e9, c.Median(contest.Cost), c.Median(contest.Allocs))
	}
	return nil
}

// What a run may allocate besides its operations: for the request for the usage, in the runtime, and for the epoll set
// that a connection opens when it becomes busy again. These are about ten objects, and twenty for a set.
const (
	otherAllocs     = 10
	otherAllocsPart = 100 // or one for each otherAllocsPart operations
)

// allocatesNothing adds the mark that a contender allocates nothing. The run with the fewest objects counts, since the others have more
// of the allocations above.
func (b *bench) allocatesNothing(c *contest.Contender, where string) {
	n := c.Least(contest.Allocs)
	if ops := float64(c.Samples[0].Ops); n*ops <= max(otherAllocs, ops/otherAllocsPart) {
		n = 0
	}
	b.Marks.Most(c.Name+": allocations of "+where, n, 0, "")
}

// on takes a measurement on a stand.
func (b *bench) on(f func(*stand) error) error {
	if err := b.remote.Start(b.ctx, b.stderr, b.opts.Profile, "perf", "streams", "--serve"); err != nil {
		return err
	}
	s := &stand{b: b}
	err := f(s)
	return errors.Join(err, s.close())
}

// A stand holds what a measurement needs, until close.
type stand struct {
	b    *bench
	ends contest.Ends
}

func (s *stand) close() error { return s.ends.Close() }

func (s *stand) later(f func() error) { s.ends = append(s.ends, f) }

// open opens a service in the server process, and returns where it listens.
func (s *stand) open(what *service) (addr string, err error) {
	var a reply
	if err := s.b.remote.Do(order{Open: what}, &a); err != nil {
		return "", err
	}
	s.later(func() error { return s.b.remote.Do(order{Close: a.Service}, &reply{}) })
	return a.Addr, nil
}

// rnic opens an RNIC with a PD.
func (s *stand) rnic() (side, error) {
	n, err := newSide()
	if err == nil {
		s.later(n.rnic.Close)
	}
	return n, err
}

// near opens a service, and an RNIC from which to connect to it.
func (s *stand) near(what *service) (n side, addr string, err error) {
	if addr, err = s.open(what); err == nil {
		n, err = s.rnic()
	}
	return n, addr, err
}

// dial connects a QP.
func (s *stand) dial(n side, addr string, cfg *iwarp.QPConfig) (*iwarp.QP, error) {
	ctx, stop := context.WithTimeout(s.b.ctx, peer.Timeout)
	defer stop()
	return n.rnic.Dial(ctx, "tcp", addr, cfg)
}

// A side holds the objects that all connections of a process share.
type side struct {
	rnic *iwarp.RNIC
	pd   *iwarp.PD
}

func newSide() (n side, err error) {
	if n.rnic, err = iwarp.Open(nil); err != nil {
		return n, err
	}
	if n.pd, err = n.rnic.AllocPD(); err != nil {
		err = errors.Join(err, n.rnic.Close())
	}
	return n, err
}

func mpaOf(crc bool) iwarp.MPAOptions { return iwarp.MPAOptions{NoCRC: !crc} }
