// Package incast is the command "iwarp perf incast": many hosts have data for one receiver, behind
// a link that is slower than all hosts together. Either the hosts write at any time, or the receiver
// reads as much at a time as its Solicitor grants, or the hosts write by package rma, where the receiver
// pulls what its Solicitor grants. The latency of a small Read of the receiver shows how long the
// queue is that the hosts cause.
package incast

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/bottleneck"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
)

type options struct {
	peers    int
	size     int   // octets of each peer
	megabits int   // the rate of the link, per second
	rate     int64 // the same, octets per second
	window   int64 // of the Solicitor, octets
	buffer   int   // of the switch, octets
	repeats  int
	latency  time.Duration
	json     bool
	html     string
	svg      string
	sleep    func(time.Duration) // of the link
}

// Command is the command.
func Command() *cobra.Command {
	o := &options{sleep: bottleneck.Sleep}
	cmd := &cobra.Command{
		Use: "incast", Short: "measure what many hosts do to one receiver, with and without a Solicitor", Args: cli.NoArgs,
		Long: `Emulates many hosts with data for one receiver, behind a link within the process that is slower than all hosts together.
Either the hosts write at any time, or the receiver reads as much at a time as its Solicitor grants, or the hosts write
by package rma. The latency of a small Read of the receiver shows how long the queue is that the hosts cause.`,
		Example: "  iwarp perf incast --html incast.html",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return o.report(cmd.Context(), cli.StreamsOf(cmd))
		},
	}
	o.flags(cmd)
	return cmd
}

func (o *options) report(ctx context.Context, s cli.Streams) error {
	if err := canDraw(o.html, o.svg); err != nil {
		return err
	}
	r, err := o.measure(ctx, cli.NewProgress(s.Err))
	if err != nil {
		return err
	}
	if o.json {
		e := json.NewEncoder(s.Out)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		err = r.print(s.Out)
	}
	if err == nil {
		err = r.draw(o.html, o.svg)
	}
	if err == nil && r.Marks.Missed() {
		err = marks.ErrMissed
	}
	return err
}

func (o *options) flags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.IntVar(&o.peers, "peers", 64, "how many hosts send at a time")
	fs.IntVar(&o.size, "size", 4<<20, "octets that each host sends")
	fs.IntVar(&o.megabits, "rate", 1000, "rate of the link, in megabits per second")
	fs.DurationVar(&o.latency, "latency", 0, "latency of the link without a queue, in each direction; timers may raise it to a millisecond")
	fs.Int64Var(&o.window, "window", 128<<10, "octets that the receiver requests at a time")
	fs.IntVar(&o.buffer, "buffer", 256<<10, "octets of the switch in front of the link: what does not fit counts as overflow, and is delayed")
	fs.IntVar(&o.repeats, "repeats", 3, "how often each way is measured, in turn")
	fs.BoolVar(&o.json, "json", false, "print JSON")
	fs.StringVar(&o.html, "html", "", "write a page with plots to this `FILE`")
	fs.StringVar(&o.svg, "svg", "", "write the plots as SVG files to this `DIRECTORY`")
}

// Values above these measure nothing: a set-up takes too long, and a Solicitor has no such window.
const (
	mostMegabits = 1_000_000
	mostLatency  = time.Second
	mostWindow   = int64(1) << 36
)

func (o *options) check() error {
	o.rate = int64(o.megabits) * 1e6 / 8
	switch {
	case o.peers < 1 || o.peers > 1024 || o.repeats < 1:
		return cli.Usagef("--peers is 1 to 1024, and --repeats 1 at least")
	case o.size < piece || o.size%piece != 0 || o.size > 64<<20:
		return cli.Usagef("--size is a multiple of %d, 64 MiB at most", piece)
	case o.megabits < 1 || o.megabits > mostMegabits || o.latency < 0 || o.latency > mostLatency:
		return cli.Usagef("--rate is 1 to %d, and --latency %v at most", mostMegabits, mostLatency)
	case o.window < least || o.window > mostWindow || o.buffer < 1:
		return cli.Usagef("--window is %d to %d, and --buffer 1 at least", least, mostWindow)
	}
	return nil
}

// measure does each way, in turn, as often as the options say.
func (o *options) measure(ctx context.Context, progress *cli.Progress) (*report, error) {
	defer progress.Clear()
	r := &report{Window: o.window, Buffer: o.buffer, rate: o.rate, octets: float64(o.peers) * float64(o.size)}
	for i := range o.repeats {
		for _, w := range ways {
			progress.Say("measuring %s, %d of %d", w.name, i+1, o.repeats)
			s, err := o.run(ctx, w)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			r.Samples = append(r.Samples, s)
		}
	}
	r.judge()
	return r, nil
}
