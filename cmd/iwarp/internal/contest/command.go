package contest

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// Options are the flags that the comparing commands share.
type Options struct {
	Pairs   int
	Span    time.Duration // of a run
	CRC     bool
	JSON    bool
	Profile string
	Serve   bool // be the server

	run  string
	only *regexp.Regexp
}

// Flags defines the flags: names are the names of the measurements. Pairs is 9 and Span 100 ms if the command has not set them.
func (o *Options) Flags(cmd *cobra.Command, names string) {
	fs := cmd.Flags()
	fs.IntVar(&o.Pairs, "pairs", cmp.Or(o.Pairs, 9), "how often two things are measured in turn")
	fs.DurationVar(&o.Span, "time", cmp.Or(o.Span, 100*time.Millisecond), "about how long each of them takes; a measurement without a comparison takes ten times that")
	fs.BoolVar(&o.CRC, "crc", true, "CRC32c of every FPDU, except with TLS")
	fs.StringVar(&o.run, "run", "", "only the measurements whose names match this `REGEXP`: "+names)
	fs.BoolVar(&o.JSON, "json", false, "print JSON")
	fs.StringVar(&o.Profile, "cpuprofile", "", "write CPU profiles to `FILE`.client and FILE.server")
	fs.BoolVar(&o.Serve, "serve", false, "be a server, as which the command starts itself, until stdin ends")
	cli.Hide(cmd, "serve")
}

// Check checks the parsed flags.
func (o *Options) Check() (err error) {
	if o.only, err = regexp.Compile(o.run); err != nil {
		return cli.Usagef("--run: %v", err)
	}
	if o.Pairs < 1 || o.Span < time.Millisecond {
		return cli.Usagef("--pairs is 1 at least, and --time 1ms")
	}
	return nil
}

// Profiled runs f, the client's part, and writes its profile.
func (o *Options) Profiled(f func() error) error {
	profile := o.Profile
	if profile != "" {
		profile += ".client"
	}
	return peer.Profiled(profile, f)
}

// A Measurement produces some of the marks of a command, whose state is a B.
type Measurement[B any] struct {
	Name string
	Run  func(B) error
}

// Measurements are the measurements of a command.
type Measurements[B any] []Measurement[B]

// Names returns all names.
func (all Measurements[B]) Names() string {
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	return strings.Join(names, ", ")
}

// Chosen returns the measurements that --run selects, at least one.
func (all Measurements[B]) Chosen(o *Options) (some Measurements[B], err error) {
	for _, m := range all {
		if o.only.MatchString(m.Name) {
			some = append(some, m)
		}
	}
	if len(some) == 0 {
		err = cli.Usagef("--run %q: the measurements are %s", o.run, all.Names())
	}
	return some, err
}

// Take takes the measurements in turn, and shows which one it takes.
func (all Measurements[B]) Take(b B, p *cli.Progress) error {
	defer p.Clear()
	for i, m := range all {
		p.Say("measuring %s, %d of %d", m.Name, i+1, len(all))
		if err := m.Run(b); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}
