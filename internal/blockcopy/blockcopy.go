// Package blockcopy copies the payload of segments.
//
// Between a buffer that was read into and its place payload is seldom aligned: a
// header of 16 octets or so stands in front of each. On such runs the built-in copy
// takes a slow way, at half the speed where both are in the cache, and it reads
// memory that it is about to overwrite where they are not. Processors whose REP MOVSB
// is fast do neither.
package blockcopy

import "github.com/goiwarp/iwarp/internal/raceorder"

// least is from how many octets on REP MOVSB wins; below, its start costs more.
const least = 2 << 10

// Copy is the built-in copy for runs that do not overlap.
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
