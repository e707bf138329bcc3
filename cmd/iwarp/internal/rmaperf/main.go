// Package rmaperf is the command "iwarp perf rma": it measures the operations of package rma, and holds
// them against their marks.
//
// What is measured between two processes goes over the loopback: this process is the client, and the
// server is a child of it. What needs a link with a delay, a rate or a failure goes over one that is
// emulated within this process. Two things are compared in pairs of one run, in turn, and the mark is
// held against the median of the ratios.
package rmaperf

import (
	"context"
	"errors"
	"flag"
	"io"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

type options struct {
	contest.Options

	chosen  contest.Measurements[*bench]
	rate    int64 // of the link that flows share, octets per second
	svg     string
	virtual bool // be the process that measures flows in virtual time
}

// measurements are all of them. Their names are what -run chooses by.
var measurements = contest.Measurements[*bench]{
	{Name: "percore", Run: (*bench).perCore},
	{Name: "cores", Run: (*bench).cores},
	{Name: "hops", Run: (*bench).hops},
	{Name: "failures", Run: (*bench).failures},
	{Name: "timeouts", Run: (*bench).timeouts},
	{Name: "blackhole", Run: (*bench).blackhole},
	{Name: "rekey", Run: (*bench).rekey},
	{Name: "rotation", Run: (*bench).rotation},
	{Name: "grace", Run: (*bench).grace},
	{Name: "fairness", Run: (*bench).fairness},
}

// Main is the command. Its error is marks.ErrMissed if a mark was missed.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	switch {
	case err != nil:
		return err
	case o.Serve:
		return peer.Profiled(o.Profile, func() error { return serve(ctx, stdin, stdout) })
	}
	if o.virtual {
		serveFlows(o, stdout)
	}
	return o.Profiled(func() error { return o.measure(ctx, stdout, stderr) })
}

func parse(args []string, stderr io.Writer) (o *options, err error) {
	o = new(options)
	var megabits int64
	fs := flag.NewFlagSet("iwarp perf rma", flag.ContinueOnError)
	fs.SetOutput(stderr)
	o.Flags(fs, measurements.Names())
	fs.Int64Var(&megabits, "rate", 1000, "of the link that eight flows share, in megabits per second")
	fs.StringVar(&o.svg, "svg", "", "write a plot of the shares of flows to this `FILE`")
	fs.BoolVar(&o.virtual, "virtual", false, "be the process that measures in virtual time, as which the command starts itself")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if err := o.Check(fs); err != nil {
		return nil, err
	}
	if megabits < 1 {
		return nil, errors.New("-rate is 1 at least")
	}
	o.rate = megabits * 1e6 / 8
	o.chosen, err = measurements.Chosen(&o.Options)
	return o, err
}

// measure does what was chosen.
func (o *options) measure(ctx context.Context, stdout, stderr io.Writer) (err error) {
	b := &bench{opts: o, ctx: ctx, stderr: stderr}
	defer func() { err = errors.Join(err, b.remote.Close()) }()
	if err := o.chosen.Take(b); err != nil {
		return err
	}
	return b.Print(stdout, o.JSON)
}
