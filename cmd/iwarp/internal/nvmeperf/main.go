// Package nvmeperf is the command "iwarp perf nvme": it measures the host and the target of examples/nvme, and compares
// them with their marks.
//
// This process is the host, and the target is a child of it; they are connected over the loopback. Speed is compared with the same
// messages without NVMe (package rpc), and with a file behind the target with the pull model of "iwarp perf commit". Two contenders
// are compared in pairs of runs, in turn, and the median of the ratios is compared with the mark.
package nvmeperf

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

type options struct {
	contest.Options

	chosen contest.Measurements[*bench]
	dir    string // for files
	cc     string
}

// measurements are all measurements. --run selects them by their names.
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

// Command is the command. Its error is marks.ErrMissed if a mark was missed.
func Command() *cobra.Command {
	o := new(options)
	cmd := &cobra.Command{
		Use: "nvme", Short: "measure the host and the target of NVMe over RDMA", Args: cli.NoArgs,
		Long: `Measures the host and the target of the example nvme in two processes on the loopback, and prints what was measured
beside each target. Speed is held against the same messages without NVMe, and with a file behind the target against
the pull model of "iwarp perf commit".
Commands of 1 MiB are measured on five pairs of processes, in runs that take twice as long.`,
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
	fs := cmd.Flags()
	fs.StringVar(&o.cc, "cc", peer.DefaultCC, "congestion control of all connections, empty: the system's")
	fs.StringVar(&o.dir, "dir", "", "`DIRECTORY` for files; empty: that for temporary files, which may be in memory")
	return cmd
}

func (o *options) check() (err error) {
	if err := o.Check(); err != nil {
		return err
	}
	if o.dir != "" {
		if _, err := os.Stat(o.dir); err != nil {
			return cli.UsageError("--dir: " + err.Error())
		}
	}
	o.chosen, err = measurements.Chosen(&o.Options)
	return err
}

// measure takes the selected measurements.
func (o *options) measure(ctx context.Context, s cli.Streams) (err error) {
	b := &bench{opts: o, ctx: ctx, stderr: s.Err}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := o.chosen.Take(b, cli.NewProgress(s.Err)); err != nil {
		return err
	}
	return b.Print(s.Out, o.JSON)
}
