package nvmeperf

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

const (
	kib = 1 << 10
	mib = 1 << 20

	// depth is how many commands are outstanding.
	depth = 32
	// diskSize is the size of a namespace, of which all octets are used: more than the caches of a processor.
	diskSize = 64 * mib
)

// A bench takes the measurements of one run of the command.
type bench struct {
	marks.Report

	opts   *options
	ctx    context.Context
	stderr io.Writer
	remote peer.Remote // the process of the target
	dir    string
}

// start starts the process of the target.
func (b *bench) start() error {
	return b.remote.Start(b.ctx, b.stderr, b.opts.Profile, "perf", "nvme", "--serve")
}

func (b *bench) close() error {
	err := b.remote.Close()
	if b.dir != "" {
		err = errors.Join(err, os.RemoveAll(b.dir))
	}
	return err
}

// file returns a path at which a file may be made.
func (b *bench) file(name string) (_ string, err error) {
	if b.dir == "" {
		if b.dir, err = os.MkdirTemp(b.opts.dir, "iwarp-nvme"); err != nil {
			return "", err
		}
	}
	return filepath.Join(b.dir, name), nil
}

// do sends the process of the target an order.
func (b *bench) do(o order) (a reply, err error) {
	err = b.remote.Do(o, &a)
	return a, err
}

// compare takes samples of contenders in turn, and prints their results.
func (b *bench) compare(all ...*contest.Contender) error {
	err := b.contest(1, all...)
	if err == nil {
		b.tell(all...)
	}
	return err
}

// contest takes samples of contenders in turn. Each run takes times as long as the options say.
func (b *bench) contest(times int, all ...*contest.Contender) error {
	x := &contest.Contest{Pairs: b.opts.Pairs, Span: time.Duration(times) * b.opts.Span, Usage: b.remote.Usage}
	return x.Compare(all...)
}

func (b *bench) tell(all ...*contest.Contender) {
	for _, c := range all {
		b.Note("%s: %.0f/s, %.2f GB/s, %.2f us of the processors for an operation, %.2f allocations",
			c.Name, c.Median(contest.PerSecond), c.Median(contest.Rate)/1e9, c.Median(contest.Cost), c.Median(contest.Allocs))
	}
}

// A stand holds what a measurement needs, until close.
type stand struct {
	b    *bench
	ends contest.Ends
}

func (s *stand) close() error { return s.ends.Close() }

func (s *stand) later(f func() error) { s.ends = append(s.ends, f) }

// on takes a measurement on a stand.
func (b *bench) on(f func(*stand) error) error {
	s := &stand{b: b}
	err := b.start()
	if err == nil {
		err = f(s)
	}
	return errors.Join(err, s.close())
}

// open opens a service in the process of the target, until close.
func (s *stand) open(what *service) (reply, error) {
	what.CRC, what.CC = s.b.opts.CRC, s.b.opts.cc
	a, err := s.b.do(order{Do: doOpen, Open: what})
	if err == nil {
		s.later(func() error {
			_, err := s.b.do(order{Do: doClose, Service: a.Service})
			return err
		})
	}
	return a, err
}
