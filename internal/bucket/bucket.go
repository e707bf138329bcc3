// Package bucket has token buckets, which know no clock.
package bucket

import "time"

// A Bucket holds tokens. It fills up with time; it may go below zero. The zero value is full.
type Bucket struct {
	spent float64   // tokens below full
	last  time.Time // when it was that
}

// Empty returns a Bucket that has no tokens until a time, and fills up from then on.
func Empty(until time.Time, burst float64) Bucket { return Bucket{spent: burst, last: until} }

// Level is how many tokens there are, if rate of them come in a second, and burst is full.
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

// Charge takes a token, whether there is one or not, and returns how many are left.
func (b *Bucket) Charge(now time.Time, rate, burst float64) float64 {
	level := b.Level(now, rate, burst) - 1
	b.spent++
	return level
}
