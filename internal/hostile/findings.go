package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/hostile/drive"
)

// findings are what a run has found.
type findings struct {
	quiet, attacked, after *histogram
	heapBefore, heapAfter  uint64
	attackers              *drive.Tally
	accepted               uint64 // connections of attackers that became queue pairs of plain verbs
	visits                 visitReport
	changed                int // octets
	wrong                  []error
	events                 map[iwarp.EventKind]uint64
	dropped                uint64
}

func (f *findings) print(w io.Writer) {
	fmt.Fprint(w, f.attackers)
	fmt.Fprintf(w, "\nbent: ")
	bent := f.attackers.Total().Bent
	for _, how := range slices.Sorted(maps.Keys(bent)) {
		fmt.Fprintf(w, "%s %d, ", how, bent[how])
	}
	fmt.Fprintf(w, "%d became queue pairs\n\nevents: ", f.accepted)
	for _, kind := range slices.Sorted(maps.Keys(f.events)) {
		fmt.Fprintf(w, "%v %d, ", kind, f.events[kind])
	}
	fmt.Fprintf(w, "dropped %d\n\n%-9s %10s %10s %10s %10s\n", f.dropped, "honest", "operations", "p50", "p99", "p99.9")
	for _, p := range []struct {
		name string
		h    *histogram
	}{{"quiet", f.quiet}, {"attacked", f.attacked}, {"after", f.after}} {
		fmt.Fprintf(w, "%-9s %10d %10v %10v %10v\n", p.name, p.h.count(), p.h.quantile(0.5), p.h.quantile(0.99), p.h.quantile(0.999))
	}
	fmt.Fprintf(w, "\nratio of p99 %.2f; heap %.1f MiB before, %.1f MiB after; visits %d, refused %d, Events lost %d; octets changed %d\n",
		f.ratio(), mib(f.heapBefore), mib(f.heapAfter), f.visits.made, f.visits.refused, f.visits.lost, f.changed)
}

func mib(n uint64) float64 { return float64(n) / (1 << 20) }

// ratio is how much the 99th percentile has risen under attack.
func (f *findings) ratio() float64 {
	return float64(f.attacked.quantile(0.99)) / float64(max(f.quiet.quantile(0.99), 1))
}

// judge returns what must not be.
func (f *findings) judge(ratio float64) error {
	errs := slices.Concat(f.wrong, f.visits.wrong)
	must := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	must(ratio == 0 || f.ratio() <= ratio, "the 99th percentile of honest operations has risen by %.2f, more than %.2f", f.ratio(), ratio)
	must(back(f.heapBefore, f.heapAfter), "the heap was %d octets before the attack and is %d after it", f.heapBefore, f.heapAfter)
	must(f.visits.made > 0, "no honest peer could connect during the attack")
	must(f.visits.lost == 0, "%d Events of honest queue pairs were lost", f.visits.lost)
	must(f.changed == 0, "%d octets have changed that no attacker may change", f.changed)
	must(f.attackers.Total().Conversations > 0, "there was no attack")
	must(f.after.count() > 0, "the honest peers do not work any more")
	return errors.Join(errs...)
}
