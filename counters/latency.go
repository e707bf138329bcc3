package counters

import (
	"math/bits"
	"time"
)

// Buckets is how many buckets a Histogram has, the last of which has no bound.
const Buckets = 26

// A Histogram counts durations. Counts[i] are those of at most Bound(i), and of more than Bound(i-1). Sum is that of all; it stays at the
// longest Duration, 292 years, once they are more: where 10,000 requests are always outstanding that is after ten days.
type Histogram struct {
	Counts [Buckets]uint64 `json:"counts"`
	Sum    time.Duration   `json:"sum_ns"`
}

// Bound is the longest duration of a bucket: 1,024 ns, and twice that for each further one, up to 17 s. The last bucket has
// none.
func Bound(bucket int) time.Duration { return 1024 << bucket }

// BucketOf is the bucket of a duration.
func BucketOf(d time.Duration) int {
	return min(bits.Len64(uint64(max(d-1, 0))>>10), Buckets-1)
}

// Latency has how long the work requests of one operation took.
type Latency struct {
	Op string `json:"op"` // the name of an iwarp.Op
	Histogram
}
