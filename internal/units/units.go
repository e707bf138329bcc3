// Package units formats numbers for people, and parses sizes.
package units

import (
	"fmt"
	"strconv"
	"time"
)

// Octets formats a number of octets with three digits and a unit that is a power of 1,000: 0 B, 12.3 kB, 1.23 GB.
func Octets(n float64) string { return Scaled(n, "B") }

// Count formats a number with three digits and the prefix of a power of 1,000: 0, 0.50, 12.3 k, 1.23 M. A whole number
// below 1,000 has no decimal places.
func Count(n float64) string { return Scaled(n, "") }

// Scaled formats a number with three digits, the prefix of a power of 1,000, and a unit.
func Scaled(n float64, unit string) string {
	prefixes := [...]string{"", "k", "M", "G", "T", "P", "E"}
	i := 0
	for ; n >= 999.5 && i < len(prefixes)-1; i++ {
		n /= 1000
	}
	number := threeDigits(n)
	if i == 0 && n == float64(int(n)) {
		number = strconv.Itoa(int(n))
	}
	if prefixes[i]+unit == "" {
		return number
	}
	return number + " " + prefixes[i] + unit
}

// threeDigits formats a number below 1,000.
func threeDigits(n float64) string {
	switch {
	case n < 9.995:
		return strconv.FormatFloat(n, 'f', 2, 64)
	case n < 99.95:
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	return strconv.FormatFloat(n, 'f', 0, 64)
}

// Duration formats a duration with three digits: 12.3 µs, 1.23 ms, 4.00 s. It returns "" for 0, which stands for none.
func Duration(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < 999500*time.Nanosecond:
		return threeDigits(float64(d)/1e3) + " µs"
	case d < 999500*time.Microsecond:
		return threeDigits(float64(d)/1e6) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + " s"
}

// Uptime formats a duration in its two greatest units: 3 d 4 h, 12 min 5 s.
func Uptime(d time.Duration) string {
	seconds := int64(d / time.Second)
	minutes, hours := seconds/60, seconds/3600
	switch {
	case hours >= 24:
		return fmt.Sprintf("%d d %d h", hours/24, hours%24)
	case hours > 0:
		return fmt.Sprintf("%d h %d min", hours, minutes%60)
	case minutes > 0:
		return fmt.Sprintf("%d min %d s", minutes, seconds%60)
	}
	return fmt.Sprintf("%d s", seconds)
}

// Whole formats a whole number with a comma before each group of three digits: 12,345.
func Whole(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
