package main

import (
	"context"
	"errors"
)

// A tally holds the results of the runs of one program over one layer.
type tally struct {
	program *compiled
	layer   layer
	counts  []uint64 // of runs, by key
	runs    uint64
	err     error // that has ended a rig
}

// runsOfRig is the number of runs after which a new rig is made, with segments of another size.
const runsOfRig = 20000

func newTally(k *compiled, l layer) *tally {
	return &tally{program: k, layer: l, counts: make([]uint64, 1<<(valueBits*len(k.names)))}
}

// run makes n runs, unless there is an error, over rigs of its own.
func (t *tally) run(ctx context.Context, n int, seed uint64) {
	for rest := n; rest > 0 && t.err == nil; rest -= runsOfRig {
		g, err := newRig(ctx, t.layer, seed+t.runs<<20)
		if err != nil {
			t.err = err
			return
		}
		t.use(ctx, g, min(rest, runsOfRig))
		t.err = errors.Join(t.err, g.close())
	}
}

// use makes n runs over one rig, unless there is an error.
func (t *tally) use(ctx context.Context, g *rig, n int) {
	q := newSession(g, t.program)
	t.err = q.run(ctx, n)
	q.end()
	for key, n := range q.counts {
		t.counts[key] += n
	}
	t.runs += q.runs
}

// byOutcome sums the runs of each outcome.
func (t *tally) byOutcome() []uint64 {
	sums := make([]uint64, len(t.program.outcomes))
	for key, n := range t.counts {
		if n > 0 {
			sums[t.program.judge(key)] += n
		}
	}
	return sums
}
