// Command metamorphic runs random programs of verbs over every network and with many options of
// framing, and demands that each ends the same everywhere. A program that does not is made smaller,
// printed, drawn, and written to a file, which -replay runs again.
//
//	go run ./internal/metamorphic -seed 1 -programs 1000
//	go run ./internal/metamorphic -seed 7 -for 10m
//	go run ./internal/metamorphic -replay FILE
//
// What is compared stands in the documentation of package program. It ends with 1 if a program fails, and with 2 if a flag is wrong.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

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
	flag.StringVar(&o.networks, "networks", "pipe,tcp,tls,sctp+udp,sctp", "`networks` to run over")
	flag.StringVar(&o.replay, "replay", "", "run the program of a `file`, over its configs or those of -seed")
	flag.IntVar(&o.times, "times", 1, "`how often` -replay runs the program")
	flag.StringVar(&o.save, "save", "metamorphic-failure.txt", "`file` for a program that fails, made smaller")
	flag.DurationVar(&o.wait, "wait", 30*time.Second, "how `long` one program may take over one config")
	flag.IntVar(&o.shrink, "shrink", 2000, "how `often` a failing program is run to make it smaller")
	flag.IntVar(&o.tries, "tries", 1, "`how often` a smaller program is run that may fail sometimes only")
	flag.Parse()
	if flag.NArg() > 0 || o.programs < 0 || o.length < 0 || o.times < 1 || o.programs == 0 && o.length == 0 && o.replay == "" {
		fmt.Fprintln(os.Stderr, "metamorphic: want -programs, -for or -replay, none negative, and no arguments")
		os.Exit(2)
	}
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "metamorphic:", err)
		os.Exit(1)
	}
}

// run does what the options say.
func run(w io.Writer, o options) error {
	skipped := make(map[string]bool)
	r := &program.Runner{Wait: o.wait, Skipped: func(c program.Config, why error) {
		if !skipped[c.Network] {
			skipped[c.Network] = true
			fmt.Fprintf(w, "skipped: %v\n", why)
		}
	}}
	if o.replay != "" {
		return replay(w, o, r)
	}
	began := time.Now()
	n, runs := 0, 0
	for ; (o.programs == 0 || n < o.programs) && (o.length == 0 || time.Since(began) < o.length); n++ {
		p := program.FromSeed(o.seed+uint64(n), strings.Split(o.networks, ",")...)
		runs += len(p.Configs)
		if f := r.Run(p, p.Configs); f != nil {
			fmt.Fprintf(w, "seed %d\n", o.seed+uint64(n))
			return report(w, o, r, f)
		}
	}
	fmt.Fprintf(w, "seeds %d to %d: %d programs, %d runs in %v, no finding\n",
		o.seed, o.seed+uint64(n)-1, n, runs-n*len(skipped), time.Since(began).Round(time.Millisecond))
	return nil
}

// replay runs a program that was saved.
func replay(w io.Writer, o options, r *program.Runner) error {
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
		if f := r.Run(p, p.Configs); f != nil {
			fmt.Fprintf(w, "%v\n\n%s", f, program.Draw(p.Conns, f.Trace))
			return errors.New("the program fails")
		}
	}
	fmt.Fprintln(w, "no finding")
	return nil
}

// report makes a failing program smaller, and prints it.
func report(w io.Writer, o options, r *program.Runner, f *program.Failure) error {
	fmt.Fprintf(w, "%v\n\nthe program, which is made smaller now:\n\n%v\n", f, f.Program)
	small := f
	program.Shrink(f.Program, o.shrink, func(p program.Program) bool {
		for range o.tries {
			if again := r.Run(p, p.Configs); again != nil && again.Kind() == f.Kind() {
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
