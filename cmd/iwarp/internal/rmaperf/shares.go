package rmaperf

import (
	"slices"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
)

// A moment records how many octets each flow had moved at a time.
type moment struct {
	at     time.Duration
	octets []int64
}

// A record is the moments of some flows, in order.
type record []moment

// within is how far the share of a flow may be from the fair share.
const within = 0.20

// shares returns the octets of each flow between two moments, relative to the fair share.
func (r record) shares(from, to int) []float64 {
	all := make([]float64, len(r[from].octets))
	var sum float64
	for i := range all {
		all[i] = float64(r[to].octets[i] - r[from].octets[i])
		sum += all[i]
	}
	for i := range all {
		all[i] *= float64(len(all)) / max(sum, 1)
	}
	return all
}

// fair reports whether each share is close to 1.
func fair(shares []float64) bool {
	return !slices.ContainsFunc(shares, func(s float64) bool { return s < 1-within || s > 1+within })
}

// windows calls f for each window of that length, sliding it from moment to moment, until f returns false.
func (r record) windows(length time.Duration, f func(from, to int) bool) {
	from := 0
	for to := range r {
		if r[to].at-r[0].at < length {
			continue
		}
		for r[to].at-r[from+1].at >= length {
			from++
		}
		if !f(from, to) {
			return
		}
	}
}

// settled returns the time after which flows have reached fair shares: the beginning of the first window that has them.
func (r record) settled(window time.Duration) (after time.Duration, ok bool) {
	r.windows(window, func(from, to int) bool {
		after, ok = r[from].at-r[0].at, fair(r.shares(from, to))
		return !ok
	})
	return after, ok
}

// from returns the part of the record from a time on, which is relative to its first moment.
func (r record) from(at time.Duration) record {
	for i := range r {
		if r[i].at-r[0].at >= at {
			return r[i:]
		}
	}
	return nil
}

// leastJain returns the least index of fairness of a window.
func (r record) leastJain(window time.Duration) float64 {
	least := 1.0
	r.windows(window, func(from, to int) bool {
		least = min(least, stats.Jain(r.shares(from, to)))
		return true
	})
	return least
}

// rate returns the octets per second that all flows have moved together.
func (r record) rate() float64 {
	var sum int64
	last := r[len(r)-1]
	for i := range last.octets {
		sum += last.octets[i] - r[0].octets[i]
	}
	return float64(sum) / (last.at - r[0].at).Seconds()
}

// rates returns the rates of each flow, octets per second, one for each stretch of that many moments.
func (r record) rates(moments int) (all [][]float64) {
	for to := moments; to < len(r); to += moments {
		from := r[to-moments]
		var of []float64
		for i, n := range r[to].octets {
			of = append(of, float64(n-from.octets[i])/(r[to].at-from.at).Seconds())
		}
		all = append(all, of)
	}
	return all
}
