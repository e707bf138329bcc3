package rmaperf

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// A bench takes the measurements of one run of the command.
type bench struct {
	opts   *options
	ctx    context.Context
	stderr io.Writer
	marks  marks.List
	notes  []string

	child  *peer.Child // the server process; nil: none was needed yet
	remote *peer.Control
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
	b.remote, err = peer.DialControl(b.child.Addr)
	return err
}

func (b *bench) close() (err error) {
	if b.remote != nil {
		err = b.remote.Close()
	}
	if b.child != nil {
		err = errors.Join(err, b.child.Stop())
	}
	return err
}

// do gives the server an order.
func (b *bench) do(o order) (a reply, err error) {
	err = b.remote.Do(o, &a)
	return a, err
}

// open opens a service in the server process. The caller calls closed when it is not needed any more.
func (b *bench) open(what *service) (a reply, closed func(), err error) {
	if err := b.start(); err != nil {
		return a, nil, err
	}
	a, err = b.do(order{Do: doOpen, Open: what})
	return a, func() { _, _ = b.do(order{Do: doClose, Service: a.Service}) }, err
}

// An arm is one side of a comparison, connected.
type arm interface {
	run(n int) error // does n operations
	close() error
}

// contest compares with the usage of both processes.
func (b *bench) contest() *contest.Contest {
	return &contest.Contest{Pairs: b.opts.pairs, Span: b.opts.span, Usage: func() (peer.Usage, error) {
		theirs, err := b.remote.Usage()
		return b.meter.Read().Plus(theirs), err
	}}
}

// compare takes samples of contenders in turn.
func (b *bench) compare(all ...*contest.Contender) error {
	if err := b.contest().Compare(all...); err != nil {
		return err
	}
	for _, c := range all {
		b.note("%v", c)
	}
	return nil
}
