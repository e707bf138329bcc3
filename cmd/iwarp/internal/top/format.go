package top

import (
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/units"
)

// narrow is a number of package units for a column: without its space, in ASCII.
func narrow(number string) string { return strings.NewReplacer(" ", "", "µ", "u").Replace(number) }

// octets is at most six characters long, and count five.
func octets(n float64) string { return narrow(units.Octets(n)) }

func count(n float64) string { return narrow(units.Count(n)) }

// exact is a number as it is, of at most six characters, and in short from there on.
func exact(n uint64) string {
	if n >= 100_000 {
		return count(float64(n))
	}
	return whole(n)
}

// brief is a duration, and a dash for none.
func brief(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return narrow(units.Duration(d))
}

// whole is a number as it is.
func whole[T int | uint64](n T) string { return units.Whole(uint64(max(n, 0))) }
