package counters

import (
	"math/bits"
	"time"
)

// Buckets is how many buckets a Histogram has. The last one has no bound.
const Buckets = 26

// A Histogram counts durations. Counts[i] counts the durations of more than Bound(i-1) and at most Bound(i). Sum is the sum of all
// durations. It stops at the longest Duration, 292 years; with 10,000 requests outstanding at all times that is after ten days.
type Histogram struct {
	Counts [Buckets]uint64 `json:"counts"`
	Sum    time.Duration   `json:"sum_ns"`
}

// Bound returns the longest duration of a bucket: 1,024 ns for the first, and twice that of its predecessor for each other one, up to
// 17 s. The last bucket has no bound.
func Bound(bucket int) time.Duration { return 1024 << bucket }

// BucketOf returns the bucket of a duration.
func BucketOf(d time.Duration) int {
	return min(bits.Len64(uint64(max(d-1, 0))>>10), Buckets-1)
}

// Latency records how long the work requests of one operation took.
type Latency struct {
	Op string `json:"op"` // the name of an iwarp.Op
	Histogram
}
