// Package rmaperf is the command "iwarp perf rma": it measures the operations of package rma, and compares
// them with their marks.
//
// Measurements between two processes go over the loopback: this process is the client, and the
// server is a child of it. Measurements that need a link with a delay, a rate or a failure use a link that is
// emulated within this process. Two contenders are compared in pairs of runs, in turn, and the median of
// the ratios is compared with the mark.
package rmaperf

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

type options struct {
	contest.Options

	chosen   contest.Measurements[*bench]
	megabits int64
	rate     int64 // of the link that flows share, octets per second
	svg      string
	virtual  bool // be the process that measures flows in virtual time
}

// fairness is the measurement that has a plot.
const fairness = "fairness"

// measurements are all measurements. --run selects them by their names.
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
	{Name: fairness, Run: (*bench).fairness},
}

// Command is the command. Its error is marks.ErrMissed if a mark was missed.
func Command() *cobra.Command {
	o := new(options)
	cmd := &cobra.Command{
		Use: "rma", Short: "measure operations on regions with keys", Args: cli.NoArgs,
		Long: `Measures the operations of package rma, and prints what was measured beside each target. What is measured between two
processes goes over the loopback; what needs a link with a delay, a rate or a failure goes over one that is emulated.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			s := cli.StreamsOf(cmd)
			if o.Serve {
				return peer.Profiled(o.Profile, func() error { return serve(cmd.Context(), s.In, s.Out) })
			}
			if o.virtual {
				serveFlows(o, s.Out)
			}
			if err := cli.CanWrite(o.svg); err != nil {
				return err
			}
			return o.Profiled(func() error { return o.measure(cmd.Context(), s) })
		},
	}
	o.Flags(cmd, measurements.Names())
	fs := cmd.Flags()
	fs.Int64Var(&o.megabits, "rate", 1000, "rate of the link that eight flows share, in megabits per second")
	fs.StringVar(&o.svg, "svg", "", "write a plot of the shares of flows to this `FILE`")
	fs.BoolVar(&o.virtual, "virtual", false, "be the process that measures in virtual time, as which the command starts itself")
	cli.Hide(cmd, "virtual")
	return cmd
}

// mostMegabits is the rate of the fastest link.
const mostMegabits = 1_000_000

func (o *options) check() (err error) {
	if err := o.Check(); err != nil {
		return err
	}
	if o.megabits < 1 || o.megabits > mostMegabits {
		return cli.Usagef("--rate is 1 to %d", mostMegabits)
	}
	o.rate = o.megabits * 1e6 / 8
	if o.chosen, err = measurements.Chosen(&o.Options); err != nil {
		return err
	}
	if o.svg != "" && !slices.ContainsFunc(o.chosen, func(m contest.Measurement[*bench]) bool { return m.Name == fairness }) {
		return cli.Usagef("--svg is a plot of %s, which --run leaves out", fairness)
	}
	return nil
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
