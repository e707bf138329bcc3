// Command metamorphic runs random programs of verbs over every network and with many framing
// options, and requires that each has the same outcome everywhere. A program that has not is made
// smaller, printed, drawn, and written to a file, which -replay runs again.
//
//	go run ./internal/metamorphic -seed 1 -programs 1000
//	go run ./internal/metamorphic -seed 7 -for 10m
//	go run ./internal/metamorphic -replay FILE
//
// The documentation of package program says what is compared. The command ends with 1 if a program fails, or if none could run because
// the machine has none of the networks, and with 2 if a flag is wrong.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/flagsonly"
	"github.com/goiwarp/iwarp/internal/metamorphic/program"
)

// options are the flags.
type options struct {
	seed     uint64
	programs int
	length   time.Duration
	networks string
	replay   string
	times    int
	save     string
	wait     time.Duration
	shrink   int
	tries    int
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "`seed` of the first program; the next one has the next seed")
	flag.IntVar(&o.programs, "programs", 0, "`number` of programs; 0: as many as there is time for")
	flag.DurationVar(&o.length, "for", 0, "how `long` to run; 0: until all programs have run")
	flag.StringVar(&o.networks, "networks", program.EveryNetwork, "`networks` to run over; one that the machine does not have is left out")
	flag.StringVar(&o.replay, "replay", "", "run the program of a `file`, over its configs or those of -seed")
	flag.IntVar(&o.times, "times", 1, "`how often` -replay runs the program")
	flag.StringVar(&o.save, "save", "metamorphic-failure.txt", "`file` for a program that fails, made smaller")
	flag.DurationVar(&o.wait, "wait", 30*time.Second, "how `long` one program may take over one config")
	flag.IntVar(&o.shrink, "shrink", 2000, "how `often` a failing program is run to make it smaller")
	flag.IntVar(&o.tries, "tries", 1, "`how often` a smaller program is run that may fail sometimes only")
	flagsonly.Main("metamorphic", o.check, func() error { return run(os.Stdout, o) })
}

func (o *options) check() error {
	if o.programs < 0 || o.length < 0 || o.times < 1 || o.programs == 0 && o.length == 0 && o.replay == "" {
		return errors.New("want -programs, -for or -replay, none negative")
	}
	for n := range strings.SplitSeq(o.networks, ",") {
		if !slices.Contains(strings.Split(program.EveryNetwork, ","), n) {
			return fmt.Errorf("-networks: %q is none of %s", n, program.EveryNetwork)
		}
	}
	return nil
}

// A runner runs programs, and counts the runs.
type runner struct {
	program.Runner
	w       io.Writer
	runs    int             // of a program over one config
	skipped map[string]bool // networks
}

func newRunner(w io.Writer, o options) *runner {
	r := &runner{w: w, skipped: make(map[string]bool)}
	r.Wait, r.Skipped = o.wait, r.skip
	return r
}

// run runs a program over its configs.
func (r *runner) run(p program.Program) *program.Failure {
	r.runs += len(p.Configs)
	return r.Run(p, p.Configs)
}

// skip is told of a config that cannot be used here.
func (r *runner) skip(c program.Config, why error) {
	r.runs--
	if !r.skipped[c.Network] {
		r.skipped[c.Network] = true
		fmt.Fprintf(r.w, "skipped: %v\n", why)
	}
}

// ran is an error if nothing has run: that is no run without a finding.
func (r *runner) ran() error {
	if r.runs == 0 {
		return errors.New("no program has run: the machine has none of the networks")
	}
	return nil
}

// run does what the options say.
func run(w io.Writer, o options) error {
	r := newRunner(w, o)
	if o.replay != "" {
		return replay(w, o, r)
	}
	began := time.Now()
	n := 0
	for more := true; more; more = (o.programs == 0 || n < o.programs) && (o.length == 0 || time.Since(began) < o.length) {
		p := program.FromSeed(o.seed+uint64(n), strings.Split(o.networks, ",")...)
		if f := r.run(p); f != nil {
			fmt.Fprintf(w, "seed %d\n", o.seed+uint64(n))
			return report(w, o, r, f)
		}
		n++
	}
	if err := r.ran(); err != nil {
		return err
	}
	fmt.Fprintf(w, "seeds %d to %d: %d programs, %d runs in %v, no finding\n",
		o.seed, o.seed+uint64(n)-1, n, r.runs, time.Since(began).Round(time.Millisecond))
	return nil
}

// replay runs a program that was saved.
func replay(w io.Writer, o options, r *runner) error {
	text, err := os.ReadFile(o.replay)
	if err != nil {
		return err
	}
	p, err := program.Parse(string(text))
	if err != nil {
		return err
	}
	if len(p.Configs) == 0 {
		p.Configs = program.DrawConfigs(rand.New(rand.NewPCG(o.seed, 1)), strings.Split(o.networks, ",")...)
	}
	for range o.times {
		if f := r.run(p); f != nil {
			fmt.Fprintf(w, "%v\n\n%s", f, program.Draw(p.Conns, f.Trace))
			return errors.New("the program fails")
		}
	}
	if err := r.ran(); err != nil {
		return err
	}
	fmt.Fprintln(w, "no finding")
	return nil
}

// report makes a failing program smaller, and prints it.
func report(w io.Writer, o options, r *runner, f *program.Failure) error {
	fmt.Fprintf(w, "%v\n\nthe program, which is made smaller now:\n\n%v\n", f, f.Program)
	small := f
	program.Shrink(f.Program, o.shrink, func(p program.Program) bool {
		for range o.tries {
			if again := r.run(p); again != nil && again.Kind() == f.Kind() {
				small = again
				return true
			}
		}
		return false
	})
	p := small.Program
	p.Configs = small.Configs
	fmt.Fprintf(w, "%v\n\n%v\n%s\n", small, p, program.Draw(p.Conns, small.Trace))
	if o.save != "" {
		if err := os.WriteFile(o.save, []byte(p.String()), 0o600); err != nil {
			return err
		}
		fmt.Fprintf(w, "go run ./internal/metamorphic -replay %s\n", o.save)
	}
	return small
}
