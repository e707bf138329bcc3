package perf

import (
	"context"
	"fmt"
	"io"
	"slices"
)

// runSuite measures all cases and reports whether all selected targets are met. A case that
// cannot be measured is a row without a value, and missed. The error is that of ctx.
func (o *options) runSuite(ctx context.Context, r *remote, suite []measurement, stderr io.Writer) (rows []row, met bool, err error) {
	met = true
	for i, m := range suite {
		goals := m.cases()
		o.announce(goals[0].name, i, len(suite))
		measured, err := m.measure(o.pairing, r, o.work.CC)
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if err != nil {
			o.progress.Clear()
			fmt.Fprintf(stderr, "%s: %v\n", goals[0].name, err)
		}
		for i := range goals {
			g := &goals[i]
			if !o.asks(g.name) { // it is measured along with another one
				continue
			}
			one := row{Case: g.name, Metric: g.metric.name, Unit: g.metric.unit}
			if err == nil {
				one = measured[i]
			}
			g.judge(&one)
			met = met && *one.Met
			rows = append(rows, one)
		}
	}
	return rows, met, nil
}

// asks reports whether a case is to be judged. --scrape has cases of its own, of the measurements that --case names.
func (o *options) asks(name string) bool {
	return len(o.only) == 0 || o.scrape > 0 || slices.Contains(o.only, name)
}

// selected returns the measurements of the suite that --case and --scrape select.
func (o *options) selected() []measurement {
	some := standard
	if len(o.only) > 0 {
		some = casesOf(o.only)
	}
	if o.scrape > 0 {
		return scrapeCases(some, o.scrape)
	}
	return some
}

// casesOf returns the measurements of the suite that have one of these cases.
func casesOf(names []string) (some []measurement) {
	for _, m := range standard {
		if slices.ContainsFunc(m.cases(), func(g goal) bool { return slices.Contains(names, g.name) }) {
			some = append(some, m)
		}
	}
	return some
}
