package rmaperf

import (
	"context"
	"io"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// A bench takes the measurements of one run of the command.
type bench struct {
	marks.Report

	opts   *options
	ctx    context.Context
	stderr io.Writer
	remote peer.Remote // the server process
}

// start starts the server process.
func (b *bench) start() error {
	return b.remote.Start(b.ctx, b.stderr, b.opts.Profile, "perf", "rma", "--serve")
}

// do sends the server an order.
func (b *bench) do(o order) (a reply, err error) {
	err = b.remote.Do(o, &a)
	return a, err
}

// open opens a service in the server process. The caller calls closed when the service is no longer needed.
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

// contest returns a Contest that counts the usage of both processes.
func (b *bench) contest() *contest.Contest {
	return &contest.Contest{Pairs: b.opts.Pairs, Span: b.opts.Span, Usage: b.remote.Usage}
}

// compare takes samples of contenders in turn.
func (b *bench) compare(all ...*contest.Contender) error {
	if err := b.contest().Compare(all...); err != nil {
		return err
	}
	for _, c := range all {
		b.Note("%v", c)
	}
	return nil
}
