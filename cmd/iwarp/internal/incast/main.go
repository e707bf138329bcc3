// Package incast is the command "iwarp perf incast": many hosts have data for one receiver, behind
// a link that is slower than they are together. Either they write when they like, or the receiver
// reads as much at a time as its Solicitor grants, or they write by package rma, where the receiver
// pulls what its Solicitor grants. What that does to a small Read of the receiver shows how long the
// queue is that they make.
package incast

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/bottleneck"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
)

type options struct {
	peers   int
	size    int   // octets of each peer
	rate    int64 // of the link, octets per second
	window  int64 // of the Solicitor, octets
	buffer  int   // of the switch, octets
	repeats int
	latency time.Duration
	json    bool
	html    string
	svg     string
	sleep   func(time.Duration) // of the link
}

// Main is the command.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	r, err := o.measure(ctx)
	if err != nil {
		return err
	}
	if err := r.draw(o.html, o.svg); err != nil {
		return err
	}
	if o.json {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		err = r.print(stdout)
	}
	if err == nil && r.Marks.Missed() {
		err = marks.ErrMissed
	}
	return err
}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{sleep: bottleneck.Sleep}
	var megabits int
	fs := flag.NewFlagSet("iwarp perf incast", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.IntVar(&o.peers, "peers", 64, "how many hosts send at a time")
	fs.IntVar(&o.size, "size", 4<<20, "octets of each of them")
	fs.IntVar(&megabits, "rate", 1000, "of the link, in megabits per second")
	fs.DurationVar(&o.latency, "latency", 0, "of the link without a queue, in each direction; the timers may make a millisecond of it")
	fs.Int64Var(&o.window, "window", 128<<10, "octets that the receiver asks for at a time")
	fs.IntVar(&o.buffer, "buffer", 256<<10, "octets of the switch in front of the link: what does not fit counts as overflow, and is delayed")
	fs.IntVar(&o.repeats, "repeats", 3, "how often each way is measured, in turn")
	fs.BoolVar(&o.json, "json", false, "print JSON")
	fs.StringVar(&o.html, "html", "", "write a page with plots to this `FILE`")
	fs.StringVar(&o.svg, "svg", "", "write the plots as SVG files to this `DIRECTORY`")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	o.rate = int64(megabits) * 1e6 / 8
	switch {
	case fs.NArg() > 0:
		return nil, fmt.Errorf("unexpected arguments %q", fs.Args())
	case o.peers < 1 || o.peers > 1024 || o.repeats < 1:
		return nil, errors.New("-peers is 1 to 1024, and -repeats 1 at least")
	case o.size < piece || o.size%piece != 0 || o.size > 64<<20:
		return nil, fmt.Errorf("-size is a multiple of %d, 64 MiB at most", piece)
	case o.rate < 1e5 || o.latency < 0:
		return nil, errors.New("-rate is 1 at least, and -latency not negative")
	case o.window < least || o.buffer < 1:
		return nil, fmt.Errorf("-window is %d at least, and -buffer 1", least)
	}
	return o, nil
}

// measure does each way so often, in turn.
func (o *options) measure(ctx context.Context) (*report, error) {
	r := &report{Window: o.window, Buffer: o.buffer, rate: o.rate, octets: float64(o.peers) * float64(o.size)}
	for range o.repeats {
		for _, w := range ways {
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
