package perf

import "github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"

// A row is the result for one metric. As JSON it is one line of the output;
// docs/performance.md explains the fields.
type row struct {
	Case          string   `json:"case"`
	Metric        string   `json:"metric"`
	Value         *float64 `json:"value"` // the median of the subject
	Unit          string   `json:"unit"`
	Baseline      string   `json:"baseline"`
	BaselineValue *float64 `json:"baseline_value"`
	Ratio         *float64 `json:"ratio"` // the median of the ratios of the pairs
	// Target is the bound for the ratio if there is one, otherwise for the value.
	Target *float64 `json:"target"`
	Met    *bool    `json:"met"`
	Pairs  int      `json:"pairs"`

	most bool // the target is an upper bound
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
		v := stats.Median(values)
		r.Value = &v
	}
	if 2*len(ratios) > len(pairs) { // in most pairs the baseline is not 0
		b, q := stats.Median(bases), stats.Median(ratios)
		r.Baseline, r.BaselineValue, r.Ratio = baseline, &b, &q
	}
	return r
}
