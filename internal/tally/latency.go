package tally

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/counters"
)

// timed holds the names of the operations that are measured, and the clock.
type timed struct {
	names []string  // of the operations, by number
	began time.Time // zero point of now
}

func (t *timed) now() int64 { return int64(time.Since(t.began)) }

// latencies returns nil for nil.
func (t *timed) latencies() *Latencies {
	if t == nil {
		return nil
	}
	return &Latencies{timed: t, ops: make([]histogram, len(t.names))}
}

// Latencies holds the latencies of all QPs with one Path, by operation.
type Latencies struct {
	timed *timed
	ops   []histogram
}

type histogram struct {
	counts [counters.Buckets]atomic.Uint64
	sum    atomic.Int64 // negative: it has overflowed, until it is set to the longest Duration
}

// Observe counts a work request that was posted at a time of Tally.Stamp and has succeeded now. It may be called on nil, and
// then does nothing.
func (l *Latencies) Observe(op uint8, posted int64) {
	if l != nil {
		l.observe(op, posted)
	}
}

func (l *Latencies) observe(op uint8, posted int64) {
	if int(op) >= len(l.ops) {
		return
	}
	d := l.timed.now() - posted
	h := &l.ops[op]
	h.counts[counters.BucketOf(time.Duration(d))].Add(1)
	if h.sum.Add(d) < 0 {
		h.sum.Store(math.MaxInt64) // and stays so: readers take a sum that decreases for one that restarts at 0
	}
}

// read returns the histograms of the operations that have counts.
func (l *Latencies) read() (all []counters.Latency) {
	if l == nil {
		return nil
	}
	for op := range l.ops {
		one := counters.Latency{Op: l.timed.names[op]}
		var n uint64
		for i := range one.Counts {
			one.Counts[i] = l.ops[op].counts[i].Load()
			n += one.Counts[i]
		}
		if n > 0 {
			if one.Sum = time.Duration(l.ops[op].sum.Load()); one.Sum < 0 {
				one.Sum = math.MaxInt64
			}
			all = append(all, one)
		}
	}
	return all
}
