package perf

import "strconv"

// A goal says what a case must reach.
type goal struct {
	name   string // of the case
	metric metric
	ratio  bool // the bound is for the ratio to the baseline, not for the value
	most   bool // the bound is an upper one
	bound  float64
}

func ratioAtLeast(name string, m metric, bound float64) goal {
	return goal{name: name, metric: m, ratio: true, bound: bound}
}

func ratioAtMost(name string, m metric, bound float64) goal {
	return goal{name: name, metric: m, ratio: true, most: true, bound: bound}
}

func valueAtMost(name string, m metric, bound float64) goal {
	return goal{name: name, metric: m, most: true, bound: bound}
}

// judge fills in the target of a row and whether it is met. What is not known is not
// met.
func (g *goal) judge(r *row) {
	v, target := r.Value, ">= "
	if g.ratio {
		v = r.Ratio
	}
	if g.most {
		target = "<= "
	}
	target += strconv.FormatFloat(g.bound, 'f', -1, 64)
	met := v != nil && (*v >= g.bound && !g.most || *v <= g.bound && g.most)
	r.Target, r.Met = &target, &met
}
