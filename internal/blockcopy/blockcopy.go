// Package blockcopy copies the payload of segments.
//
// A payload in a receive buffer is seldom aligned with its destination, since a header
// of about 16 octets precedes it. For such runs the built-in copy is slow: it takes twice
// the time if both are in the cache, and otherwise it reads memory that it is about to
// overwrite. REP MOVSB has neither problem on processors where it is fast.
package blockcopy

import "github.com/goiwarp/iwarp/internal/raceorder"

// least is the length from which on REP MOVSB is faster; below, its start costs more.
const least = 2 << 10

// Copy is like the built-in copy, for runs that do not overlap.
func Copy(dst, src []byte) int {
	n := min(len(dst), len(src))
	raceorder.Lock()
	if n < least || !fast {
		copy(dst[:n], src)
	} else {
		move(dst[:n], src[:n])
	}
	raceorder.Unlock()
	return n
}
