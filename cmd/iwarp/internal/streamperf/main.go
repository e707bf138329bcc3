// Package streamperf is the command "iwarp perf streams": it measures packages rsocket and rpcrdma, and compares them with their
// marks.
//
// This process is the client, and the server is a child of it; they are connected over the loopback. An rsocket is compared with
// RDMA Writes and Sends of the same octets and with plain TCP, and a READ of NFS with the same messages without RPC
// (package rpc). The contenders take turns in one run, and the median of the ratios is compared with the mark.
package streamperf

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

type options struct {
	contest.Options

	chosen contest.Measurements[*bench]
}

// measurements are all measurements. --run selects them by their names.
var measurements = contest.Measurements[*bench]{
	{Name: "stream", Run: (*bench).stream},
	{Name: "pingpong", Run: (*bench).pingpong},
	{Name: "read", Run: (*bench).reads},
}

// How often contenders are measured in turn, and how long each time. The rate of TCP rises and falls by half from one tenth of a
// second to the next, depending on where the scheduler places the two processes.
const (
	pairs = 15
	span  = 300 * time.Millisecond
)

// Command is the command. Its error is marks.ErrMissed if a mark was missed.
func Command() *cobra.Command {
	o := &options{Options: contest.Options{Pairs: pairs, Span: span}}
	cmd := &cobra.Command{
		Use: "streams", Short: "measure stream sockets, and READ of NFS over RDMA", Args: cli.NoArgs,
		Long: `Measures packages rsocket and rpcrdma in two processes on the loopback, and prints what was measured beside each
target. An rsocket is held against RDMA Writes and Sends of the same octets and against plain TCP, and a READ of NFS
against the same messages without RPC.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			s := cli.StreamsOf(cmd)
			if o.Serve {
				return peer.Profiled(o.Profile, func() error { return serve(cmd.Context(), s.In, s.Out) })
			}
			return o.Profiled(func() error { return o.measure(cmd.Context(), s) })
		},
	}
	o.Flags(cmd, measurements.Names())
	return cmd
}

func (o *options) check() (err error) {
	if err := o.Check(); err != nil {
		return err
	}
	o.chosen, err = measurements.Chosen(&o.Options)
	return err
}

// measure takes the selected measurements.
func (o *options) measure(ctx context.Context, s cli.Streams) (err error) {
	b := &bench{opts: o, ctx: ctx, stderr: s.Err}
	defer func() { err = errors.Join(err, b.remote.Close()) }()
	if err := o.chosen.Take(b, cli.NewProgress(s.Err)); err != nil {
		return err
	}
	return b.Print(s.Out, o.JSON)
}
