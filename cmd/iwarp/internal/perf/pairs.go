package perf

import "time"

// A pair is what the subject and the baseline did one right after the other. Without
// a baseline it has only a subject.
type pair struct{ subject, baseline *sample }

// A pairing says how to compare.
type pairing struct {
	pairs int           // how many
	span  time.Duration // about how long each run takes
}

// compare runs a subject and a baseline in turn: A B A B.
func (p pairing) compare(r *remote, subject workload, baseline *workload) ([]pair, error) {
	a, err := openArm(r, subject, p.span)
	if err != nil {
		return nil, err
	}
	defer a.close() //nolint:errcheck // the samples are taken
	var b *arm
	if baseline != nil {
		if b, err = openArm(r, *baseline, p.span); err != nil {
			return nil, err
		}
		defer b.close() //nolint:errcheck // the samples are taken
	}
	return p.alternate(a, b)
}

// alternate runs two arms in turn; b may be nil.
func (p pairing) alternate(a, b *arm) ([]pair, error) {
	pairs := make([]pair, p.pairs)
	for i := range pairs {
		var err error
		if pairs[i].subject, err = a.run(); err != nil {
			return nil, err
		}
		if b == nil {
			continue
		}
		if pairs[i].baseline, err = b.run(); err != nil {
			return nil, err
		}
	}
	return pairs, nil
}

// A row is what the pairs say about one metric.
type row struct {
	Case          string   `json:"case"`
	Metric        string   `json:"metric"`
	Value         *float64 `json:"value"` // the median of the subject
	Unit          string   `json:"unit"`
	Baseline      string   `json:"baseline"`
	BaselineValue *float64 `json:"baseline_value"`
	Ratio         *float64 `json:"ratio"` // the median of the ratios of the pairs
	Target        *string  `json:"target"`
	Met           *bool    `json:"met"`
	Pairs         int      `json:"pairs"`
}

// summarize takes the medians.
func summarize(name string, m metric, baseline string, pairs []pair) row {
	var values, bases, ratios []float64
	for _, p := range pairs {
		v := m.of(p.subject)
		values = append(values, v)
		if p.baseline != nil {
			b := m.of(p.baseline)
			bases = append(bases, b)
			if b != 0 {
				ratios = append(ratios, v/b)
			}
		}
	}
	r := row{Case: name, Metric: m.name, Unit: m.unit, Pairs: len(pairs)}
	if len(values) > 0 {
		v := median(values)
		r.Value = &v
	}
	if len(ratios) > 0 {
		b, q := median(bases), median(ratios)
		r.Baseline, r.BaselineValue, r.Ratio = baseline, &b, &q
	}
	return r
}
