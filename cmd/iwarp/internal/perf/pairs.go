package perf

import "time"

// A pair is what the subject and the baseline did one right after the other. Without
// a baseline it has only a subject.
type pair struct{ subject, baseline *sample }

// A pairing says how to compare.
type pairing struct {
	pairs int           // how many
	span  time.Duration // about how long each run takes
	begin func(i int)   // if not nil, called when pair i begins
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
	var pairs []pair // not allocated in advance: a flag can request more than fit into memory
	for i := range p.pairs {
		if p.begin != nil {
			p.begin(i)
		}
		var one pair
		var err error
		if one.subject, err = a.run(); err != nil {
			return nil, err
		}
		if b != nil {
			if one.baseline, err = b.run(); err != nil {
				return nil, err
			}
		}
		pairs = append(pairs, one)
	}
	return pairs, nil
}
