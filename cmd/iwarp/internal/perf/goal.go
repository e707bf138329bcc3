package perf

// A goal says what a case must reach.
type goal struct {
	name   string // of the case
	metric metric
	ratio  bool // the bound is for the ratio to the baseline, not for the value
	most   bool // the bound is an upper bound
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

// judge fills in the target of a row and whether it is met. A target without a value is not
// met. If the bound is for the value, the row loses its baseline.
func (g *goal) judge(r *row) {
	v := r.Ratio
	if !g.ratio {
		v = r.Value
		r.Baseline, r.BaselineValue, r.Ratio = "", nil, nil
	}
	met := v != nil && (*v >= g.bound && !g.most || *v <= g.bound && g.most)
	r.Target, r.Met, r.most = &g.bound, &met, g.most
}
