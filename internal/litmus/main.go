// Command litmus runs small programs of two and three queue pairs, whose outcomes the ordering
// rules of RFC 5040 section 5.5, RFC 7306 and RDMA Commit divide into forbidden, required and
// allowed ones, over all lower layers.
//
//	go run ./internal/litmus -runs 1e6
//	go run ./internal/litmus -runs 1e5 -program 'Read, .*' -layer tcp
//	go run ./internal/litmus -doc > docs/ordering.md
//
// It fails if a forbidden outcome occurs, or one that never occurs according to docs/ordering.md;
// with a million runs or more, also if an outcome that must be possible does not occur. Its
// output is a table of how often each outcome has occurred. The choices of all goroutines are
// random and come from -seed. How the goroutines interleave does not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"sync"
	"time"
)

type options struct {
	runs    float64
	seed    uint64
	program string
	layer   string
	doc     bool
}

func main() {
	var o options
	flag.Float64Var(&o.runs, "runs", 1e5, "`number` of runs of each program, of which each layer gets the same share")
	flag.Uint64Var(&o.seed, "seed", 1, "`seed` of all random choices")
	flag.StringVar(&o.program, "program", ".*", "run only programs whose whole name matches this `regexp`")
	flag.StringVar(&o.layer, "layer", ".*", "run only over layers whose whole name matches this `regexp`")
	flag.BoolVar(&o.doc, "doc", false, "print docs/ordering.md to the standard output, and run nothing")
	flag.Parse()
	if flag.NArg() > 0 || o.runs < 1 {
		fmt.Fprintln(os.Stderr, "litmus: there are no arguments, and at least one run")
		os.Exit(2)
	}
	if err := litmus(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "litmus:", err)
		os.Exit(1)
	}
}

// conclusive is how many runs of a program must show each outcome that must occur.
const conclusive = 1e6

func litmus(w io.Writer, o options) error {
	if o.doc {
		return writeDoc(w)
	}
	programs, ls, err := o.choose()
	if err != nil {
		return err
	}
	began := time.Now()
	var errs []error
	printHead(w, ls)
	for _, k := range programs {
		ts := runOver(k, ls, 1+(int(o.runs)-1)/len(ls), o.seed)
		printTallies(w, ts)
		errs = append(errs, judge(ts, o.runs >= conclusive))
	}
	fmt.Fprintf(w, "%d programs, %d layers, %.0f runs of each program, seed %d, in %v\n", len(programs), len(ls), o.runs, o.seed, time.Since(began).Round(time.Second))
	return errors.Join(errs...)
}

// runOver runs a program over all layers at once.
func runOver(k *compiled, ls []layer, runs int, seed uint64) []*tally {
	ts := make([]*tally, len(ls))
	var all sync.WaitGroup
	for i, l := range ls {
		ts[i] = newTally(k, l)
		all.Go(func() { ts[i].run(context.Background(), runs, seed) })
	}
	all.Wait()
	return ts
}

// choose returns the programs and layers that match the options.
func (o *options) choose() (ks []*compiled, ls []layer, err error) {
	program, err := regexp.Compile("^(?:" + o.program + ")$")
	if err != nil {
		return nil, nil, err
	}
	name, err := regexp.Compile("^(?:" + o.layer + ")$")
	if err != nil {
		return nil, nil, err
	}
	for _, g := range groups {
		for i := range g.programs {
			if !program.MatchString(g.programs[i].name) {
				continue
			}
			k, err := compile(&g.programs[i])
			if err != nil {
				return nil, nil, err
			}
			ks = append(ks, k)
		}
	}
	for _, l := range allLayers {
		if name.MatchString(l.name) {
			ls = append(ls, l)
		}
	}
	if len(ks) == 0 || len(ls) == 0 {
		return nil, nil, errors.New("no program, or no layer, has such a name")
	}
	return ks, ls, nil
}
