package top

import (
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/units"
)

// narrow returns a number of package units for a column: without its space, in ASCII.
func narrow(number string) string { return strings.NewReplacer(" ", "", "µ", "u").Replace(number) }

// octets returns at most six characters, and count at most five.
func octets(n float64) string { return narrow(units.Octets(n)) }

func count(n float64) string { return narrow(units.Count(n)) }

// exact returns at most six characters: all digits of a number below 100,000, and an abbreviation of a larger one.
func exact(n uint64) string {
	if n >= 100_000 {
		return count(float64(n))
	}
	return whole(n)
}

// brief returns a duration, or a dash if it is 0.
func brief(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return narrow(units.Duration(d))
}

// whole returns all digits of a number.
func whole[T int | uint64](n T) string { return units.Whole(uint64(max(n, 0))) }
