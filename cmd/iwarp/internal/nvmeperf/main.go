// Package nvmeperf is the command "iwarp perf nvme": it measures the host and the target of examples/nvme, and holds
// them against their marks.
//
// This process is the host, and the target is a child of it; they are connected over the loopback. Speed is held against the same
// messages without NVMe (package rpc), and with a file behind the target against the pull model of "iwarp perf commit". Two things
// are compared in pairs of one run, in turn, and the mark is held against the median of the ratios.
package nvmeperf

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// ErrMissed is what Main returns when a mark was missed.
var ErrMissed = errors.New("not all marks are met")

type options struct {
	pairs   int
	span    time.Duration // of a block
	crc     bool
	json    bool
	only    *regexp.Regexp
	dir     string // for files
	cc      string
	profile string
	serve   bool // be the target
}

// A measurement comes to some of the marks.
type measurement struct {
	name string
	run  func(*bench) error
}

// measurements are all of them. Their names are what -run chooses by.
var measurements = []measurement{
	{"read", (*bench).reads},
	{"write", (*bench).writes},
	{"keyed", (*bench).keyed},
	{"throughput", (*bench).throughput},
	{"flush", (*bench).flushes},
	{"queues", (*bench).queues},
	{"incast", (*bench).incast},
	{"hostile", (*bench).hostile},
}

// Main is the command.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	switch {
	case err != nil:
		return err
	case o.serve:
		return peer.Profiled(o.profile, func() error { return serve(ctx, stdin, stdout) })
	}
	profile := o.profile
	if profile != "" {
		profile += ".client"
	}
	return peer.Profiled(profile, func() error { return o.measure(ctx, stdout, stderr) })
}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := new(options)
	var run string
	fs := flag.NewFlagSet("iwarp perf nvme", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.IntVar(&o.pairs, "pairs", 9, "how often two things are measured in turn")
	fs.DurationVar(&o.span, "time", 100*time.Millisecond, "about how long each of them takes; what is no comparison takes ten times that")
	fs.BoolVar(&o.crc, "crc", true, "CRC32c of every FPDU")
	fs.StringVar(&run, "run", "", "only the measurements whose names match this `REGEXP`: "+names())
	fs.BoolVar(&o.json, "json", false, "print JSON")
	fs.StringVar(&o.cc, "cc", peer.DefaultCC, "congestion control of the connections of perf commit, empty: the system's")
	fs.StringVar(&o.dir, "dir", "", "where to put files; empty: the directory for temporary ones, which may be in memory")
	fs.StringVar(&o.profile, "cpuprofile", "", "write CPU profiles to `FILE`.client and FILE.server")
	fs.BoolVar(&o.serve, "s", false, "be a server, as which the command starts itself, until stdin ends")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	var err error
	if o.only, err = regexp.Compile(run); err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	switch {
	case fs.NArg() > 0:
		return nil, fmt.Errorf("unexpected arguments %q", fs.Args())
	case o.pairs < 1 || o.span < time.Millisecond:
		return nil, errors.New("-pairs is 1 at least, and -time 1ms")
	case len(o.chosen()) == 0:
		return nil, fmt.Errorf("-run %q: the measurements are %s", run, names())
	}
	return o, nil
}

func names() (s string) {
	for i, m := range measurements {
		if i > 0 {
			s += ", "
		}
		s += m.name
	}
	return s
}

func (o *options) chosen() (all []measurement) {
	for _, m := range measurements {
		if o.only.MatchString(m.name) {
			all = append(all, m)
		}
	}
	return all
}

// measure does what was chosen.
func (o *options) measure(ctx context.Context, stdout, stderr io.Writer) (err error) {
	b := &bench{opts: o, ctx: ctx, stderr: stderr}
	defer func() { err = errors.Join(err, b.close()) }()
	for _, m := range o.chosen() {
		if err := m.run(b); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if err := b.print(stdout); err != nil {
		return err
	}
	if b.marks.Missed() {
		return ErrMissed
	}
	return nil
}

// A report is what is printed.
type report struct {
	Marks marks.List `json:"marks"`
	Notes []string   `json:"notes"` // the numbers behind the marks
}

func (b *bench) print(stdout io.Writer) error {
	if b.opts.json {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(report{b.marks, b.notes})
	}
	if err := b.marks.Print(stdout); err != nil {
		return err
	}
	fmt.Fprintln(stdout)
	for _, n := range b.notes {
		fmt.Fprintln(stdout, n)
	}
	return nil
}
