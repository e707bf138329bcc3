package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
)

// violations lists the outcomes that have occurred although they are forbidden, or said never to occur.
func (t *tally) violations() (wrong []string) {
	if t.err != nil {
		wrong = append(wrong, t.err.Error())
	}
	for key, n := range t.counts {
		if n == 0 {
			continue
		}
		switch o := t.program.outcomes[t.program.judge(key)]; {
		case o.is == forbidden:
			wrong = append(wrong, fmt.Sprintf("%s: forbidden, in %d of %d runs", t.program.describe(key), n, t.runs))
		case o.never&t.layer.kind != 0:
			wrong = append(wrong, fmt.Sprintf("%s: in %d of %d runs, and docs/ordering.md says never", t.program.describe(key), n, t.runs))
		}
	}
	return wrong
}

// unseen lists the outcomes of one program that must occur over these layers and have not: a
// required outcome over each of them, and an allowed one over at least one layer of each kind in its seen.
func unseen(ts []*tally) (missing []string) {
	for i := range ts[0].program.outcomes {
		o := &ts[0].program.outcomes[i]
		var over, seen layers
		for _, t := range ts {
			over |= t.layer.kind
			if t.byOutcome()[i] > 0 {
				seen |= t.layer.kind
			} else if o.is == required {
				missing = append(missing, fmt.Sprintf("%s over %s", o.title(), t.layer.name))
			}
		}
		if o.seen&over&^seen != 0 {
			missing = append(missing, o.title())
		}
	}
	return missing
}

// judge returns what is wrong with the runs of one program, or nil. If all is set, outcomes that must
// occur and have not are wrong, too.
func judge(ts []*tally, all bool) error {
	var errs []error
	for _, t := range ts {
		if wrong := t.violations(); len(wrong) > 0 {
			errs = append(errs, fmt.Errorf("%s (%s), over %s: %s", t.program.name, t.program.rule, t.layer.name, strings.Join(wrong, "; ")))
		}
	}
	if missing := unseen(ts); all && len(missing) > 0 {
		errs = append(errs, fmt.Errorf("%s (%s): not seen in %d runs: %s", ts[0].program.name, ts[0].program.rule, ts[0].runs, strings.Join(missing, "; ")))
	}
	return errors.Join(errs...)
}

func (o *outcome) title() string { return cmp.Or(o.when, "anything else") }

// printTallies writes a line for each outcome of a program.
func printTallies(w io.Writer, ts []*tally) {
	for i, o := range ts[0].program.outcomes {
		counts := make([]string, len(ts))
		for j, t := range ts {
			counts[j] = fmt.Sprintf("%12d", t.byOutcome()[i])
		}
		fmt.Fprintf(w, "%-70s  %-24s %-9v %s\n", ts[0].program.name, o.title(), o.is, strings.Join(counts, ""))
	}
}

// printHead writes the heads of the columns.
func printHead(w io.Writer, ls []layer) {
	fmt.Fprintf(w, "%-70s  %-24s %-9s ", "program", "outcome", "verdict")
	for _, l := range ls {
		fmt.Fprintf(w, "%12s", l.short)
	}
	fmt.Fprintln(w)
}
