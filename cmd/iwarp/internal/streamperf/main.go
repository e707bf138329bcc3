// Package streamperf is the command "iwarp perf streams": it measures packages rsocket and rpcrdma, and holds them against their
// marks.
//
// This process is the client, and the server is a child of it; they are connected over the loopback. An rsocket is held against
// RDMA Writes and Sends of the same octets and against plain TCP, and a READ of NFS against the same messages without RPC
// (package rpc). What is compared takes turns in one run, and the mark is held against the median of the ratios.
package streamperf

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
}

// measurements are all of them. Their names are what -run chooses by.
var measurements = contest.Measurements[*bench]{
	{Name: "stream", Run: (*bench).stream},
	{Name: "pingpong", Run: (*bench).pingpong},
	{Name: "read", Run: (*bench).reads},
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
	fs := flag.NewFlagSet("iwarp perf streams", flag.ContinueOnError)
	fs.SetOutput(stderr)
	o.Flags(fs, measurements.Names())
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
	defer func() { err = errors.Join(err, b.remote.Close()) }()
	if err := o.chosen.Take(b); err != nil {
		return err
	}
	return b.Print(stdout, o.JSON)
}
