// Command mutate proves that the requirement tests notice mistakes: it changes
// one line of the source at a time and demands that the test named for the
// change fails.
//
//	go run ./internal/mutate              # all mutations
//	go run ./internal/mutate -n 20 -seed 7  # a sample
//	go run ./internal/mutate -run 'MPA-12.*'
//	go run ./internal/mutate -list
//
// It is run in the root of the module. The list is in the package list. The tree is never touched: the changed file reaches
// the compiler through an overlay. A mutation that does not compile counts as a
// mistake of the list, a test that never ends as a test that failed. A wrong call ends with 2.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/goiwarp/iwarp/internal/flagsonly"
	"github.com/goiwarp/iwarp/internal/mutate/list"
)

func main() {
	n := flag.Int("n", 0, "run a sample of `count` mutations (0: all)")
	seed := flag.Uint64("seed", 1, "`seed` of the sample")
	show := flag.Bool("list", false, "list the mutations and end")
	run := flag.String("run", "", "run only the mutations whose whole id matches this `regexp`")
	flagsonly.Parse("mutate")

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := mutate(ctx, os.Stdout, options{sample: *n, seed: *seed, list: *show, id: *run})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

type options struct {
	sample int
	seed   uint64
	list   bool
	id     string
}

// mutate does what the options say and tells whether every mutation was noticed.
func mutate(ctx context.Context, w io.Writer, o options) (bool, error) {
	root, err := filepath.Abs(".")
	if err != nil {
		return false, err
	}
	all, err := list.Load()
	if err != nil {
		return false, err
	}
	ms, err := choose(all.Mutations, o)
	if err != nil {
		return false, err
	}
	if o.list {
		printList(w, ms)
		return true, nil
	}
	start := time.Now()
	r := newReport(w)
	if err := newRunner(ctx, root).run(ms, r.add); err != nil {
		return false, err
	}
	return r.end(time.Since(start)), nil
}

// choose picks the mutations that the options ask for, in the order of the list.
func choose(ms []list.Mutation, o options) ([]list.Mutation, error) {
	if o.id != "" {
		want, err := regexp.Compile("^(?:" + o.id + ")$")
		if err != nil {
			return nil, err
		}
		ms = slices.DeleteFunc(ms, func(m list.Mutation) bool { return !want.MatchString(m.ID) })
	}
	if len(ms) == 0 {
		return nil, fmt.Errorf("no mutation matches")
	}
	if o.sample <= 0 || o.sample >= len(ms) {
		return ms, nil
	}
	r := rand.New(rand.NewPCG(o.seed, 0))
	picked := r.Perm(len(ms))[:o.sample]
	slices.Sort(picked)
	sample := make([]list.Mutation, 0, o.sample)
	for _, i := range picked {
		sample = append(sample, ms[i])
	}
	return sample, nil
}

func printList(w io.Writer, ms []list.Mutation) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, m := range ms {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s  =>  %s\n", m.ID, m.File, m.Target(), m.Old, m.New)
	}
	tw.Flush()
}

// A report prints results as they come, and counts them.
type report struct {
	w      io.Writer
	counts map[verdict]int
}

func newReport(w io.Writer) *report { return &report{w: w, counts: make(map[verdict]int)} }

// add prints one result, and why if the mutation was not noticed.
func (r *report) add(res result) {
	r.counts[res.verdict]++
	fmt.Fprintf(r.w, "%-8s  %-12s  %s  %s  %.1fs\n", res.verdict, res.m.ID, res.m.File, res.m.Target(), res.took.Seconds())
	if res.verdict != noticed {
		fmt.Fprintf(r.w, "- %s\n+ %s\n%s\n\n", res.m.Old, res.m.New, strings.TrimSpace(res.output))
	}
}

// end prints the sum and tells whether all mutations were noticed.
func (r *report) end(took time.Duration) bool {
	unnoticed := r.counts[survived] + r.counts[bad]
	fmt.Fprintf(r.w, "\n%d mutations, %d noticed, %d survived, %d bad, in %.0f s\n",
		r.counts[noticed]+unnoticed, r.counts[noticed], r.counts[survived], r.counts[bad], took.Seconds())
	return unnoticed == 0
}
