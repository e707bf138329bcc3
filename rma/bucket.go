package rma

import "time"

// A bucket holds tokens. It fills up with time.
type bucket struct {
	spent float64   // tokens below full
	last  time.Time // when it was that
}

// take takes a token if there is one.
func (b *bucket) take(now time.Time, rate float64) bool {
	if past := now.Sub(b.last); past > 0 {
		b.spent = max(b.spent-past.Seconds()*rate, 0)
		b.last = now
	}
	if b.spent+1 > rate {
		return false
	}
	b.spent++
	return true
}
