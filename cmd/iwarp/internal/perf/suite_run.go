package perf

import (
	"fmt"
	"io"
	"slices"
)

// runSuite measures all cases and tells whether every target is met. A case that
// cannot be measured is a row without a value, and missed.
func (o *options) runSuite(r *remote, suite []measurement, stderr io.Writer) (rows []row, met bool) {
	met = true
	for i := range suite {
		m := &suite[i]
		m.subject.CC, m.baseline.CC = o.work.CC, o.work.CC
		pairs, err := o.pairing.compare(r, m.subject, &m.baseline)
		if err != nil {
			fmt.Fprintf(stderr, "%s: %v\n", m.goals[0].name, err)
		}
		goals := append(m.goals[:len(m.goals):len(m.goals)], valueAtMost("allocs_"+m.goals[0].name, allocs, noAllocs))
		for _, g := range goals {
			one := summarize(g.name, g.metric, m.baseline.Kind, pairs)
			g.judge(&one)
			met = met && *one.Met
			rows = append(rows, one)
		}
	}
	return rows, met
}

// noAllocs is what counts as no allocation per operation: what is left is the
// runtime's own, such as the refilling of a pool after a collection.
const noAllocs = 0.005

// selected are the measurements of the suite that -case asks for.
func (o *options) selected() []measurement {
	if len(o.only) == 0 {
		return standard
	}
	var some []measurement
	for _, m := range standard {
		if slices.ContainsFunc(m.goals, func(g goal) bool { return slices.Contains(o.only, g.name) }) {
			some = append(some, m)
		}
	}
	return some
}
