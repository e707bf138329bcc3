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
// mistake of the list, a test that never ends as a test that failed.
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/goiwarp/iwarp/internal/mutate/list"
)

func main() {
	n := flag.Int("n", 0, "run a sample of `count` mutations (0: all)")
	seed := flag.Uint64("seed", 1, "`seed` of the sample")
	show := flag.Bool("list", false, "list the mutations and end")
	run := flag.String("run", "", "run only the mutations whose whole id matches this `regexp`")
	flag.Parse()

	ok, err := mutate(os.Stdout, options{sample: *n, seed: *seed, list: *show, id: *run})
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
func mutate(w io.Writer, o options) (bool, error) {
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
	results, err := newRunner(root).run(ms)
	if err != nil {
		return false, err
	}
	return printResults(w, results, time.Since(start)), nil
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

// printResults prints a table and tells whether all mutations were noticed.
func printResults(w io.Writer, rs []result, took time.Duration) bool {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	counts := make(map[verdict]int)
	for _, r := range rs {
		counts[r.verdict]++
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%.1fs\n", r.verdict, r.m.ID, r.m.File, r.m.Target(), r.took.Seconds())
	}
	tw.Flush()
	for _, r := range rs {
		if r.verdict != noticed {
			fmt.Fprintf(w, "\n%s %s in %s:\n- %s\n+ %s\n%s\n", r.verdict, r.m.ID, r.m.File, r.m.Old, r.m.New,
				strings.TrimSpace(r.output))
		}
	}
	fmt.Fprintf(w, "\n%d mutations, %d noticed, %d survived, %d bad, in %.0f s\n",
		len(rs), counts[noticed], counts[survived], counts[bad], took.Seconds())
	return counts[noticed] == len(rs)
}
