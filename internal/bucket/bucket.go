// Package bucket implements token buckets without a clock: callers pass the time.
package bucket

import "time"

// A Bucket holds tokens. It fills over time, and may fall below zero. The zero value is full.
type Bucket struct {
	spent float64   // tokens below full
	last  time.Time // when spent was computed
}

// Empty returns a Bucket that holds no tokens until a time, and fills from then on.
func Empty(until time.Time, burst float64) Bucket { return Bucket{spent: burst, last: until} }

// Level returns the number of tokens in a Bucket that gains rate tokens a second and holds at most burst.
func (b *Bucket) Level(now time.Time, rate, burst float64) float64 {
	if past := now.Sub(b.last); past > 0 {
		b.spent = max(b.spent-past.Seconds()*rate, 0)
		b.last = now
	}
	return burst - b.spent
}

// Take takes a token if there is one.
func (b *Bucket) Take(now time.Time, rate, burst float64) bool {
	if b.Level(now, rate, burst) < 1 {
		return false
	}
	b.spent++
	return true
}

// Charge takes a token even if there is none, and returns how many are left.
func (b *Bucket) Charge(now time.Time, rate, burst float64) float64 {
	level := b.Level(now, rate, burst) - 1
	b.spent++
	return level
}
