package transfer

import (
	"fmt"
	"strconv"
	"strings"
)

// A Size is a number of octets, for people: 100000, 64MiB, 5GiB.
type Size int64

var units = []struct {
	suffix string
	octets int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// String uses the largest unit that divides the size.
func (s *Size) String() string {
	for _, u := range units {
		if n := int64(*s); n != 0 && n%u.octets == 0 {
			return strconv.FormatInt(n/u.octets, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(*s), 10)
}

// Type is for package pflag.
func (s *Size) Type() string { return "size" }

// Set is for packages flag and pflag.
func (s *Size) Set(text string) error {
	unit := int64(1)
	for _, u := range units {
		if t, ok := strings.CutSuffix(text, u.suffix); ok {
			text, unit = t, u.octets
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > maxSize/unit {
		return fmt.Errorf("not a size such as 100000, 64MiB or 5GiB")
	}
	*s = Size(n * unit)
	return nil
}
