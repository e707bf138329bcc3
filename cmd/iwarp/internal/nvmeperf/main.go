// Package nvmeperf is the command "iwarp perf nvme": it measures the host and the target of examples/nvme, and holds
// them against their marks.
//
// This process is the host, and the target is a child of it; they are connected over the loopback. Speed is held against the same
// messages without NVMe (package rpc), and with a file behind the target against the pull model of "iwarp perf commit". Two things
// are compared in pairs of one run, in turn, and the mark is held against the median of the ratios.
package nvmeperf

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

	chosen contest.Measurements[*bench]
	dir    string // for files
	cc     string
}

// measurements are all of them. Their names are what -run chooses by.
var measurements = contest.Measurements[*bench]{
	{Name: "read", Run: (*bench).reads},
	{Name: "write", Run: (*bench).writes},
	{Name: "keyed", Run: (*bench).keyed},
	{Name: "throughput", Run: (*bench).throughput},
	{Name: "flush", Run: (*bench).flushes},
	{Name: "queues", Run: (*bench).queues},
	{Name: "incast", Run: (*bench).incast},
	{Name: "hostile", Run: (*bench).hostile},
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
	return o.Profiled(func() error { return o.measure(ctx, stdout, stderr) })
}

func parse(args []string, stderr io.Writer) (o *options, err error) {
	o = new(options)
	fs := flag.NewFlagSet("iwarp perf nvme", flag.ContinueOnError)
	fs.SetOutput(stderr)
	o.Flags(fs, measurements.Names())
	fs.StringVar(&o.cc, "cc", peer.DefaultCC, "congestion control of the connections of perf commit, empty: the system's")
	fs.StringVar(&o.dir, "dir", "", "where to put files; empty: the directory for temporary ones, which may be in memory")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if err := o.Check(fs); err != nil {
		return nil, err
	}
	o.chosen, err = measurements.Chosen(&o.Options)
	return o, err
}

// measure does what was chosen.
func (o *options) measure(ctx context.Context, stdout, stderr io.Writer) (err error) {
	b := &bench{opts: o, ctx: ctx, stderr: stderr}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := o.chosen.Take(b); err != nil {
		return err
	}
	return b.Print(stdout, o.JSON)
}
