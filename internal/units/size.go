package units

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// A Size is a number of octets, 0 or more, on a command line: 4096, 512KiB, 4MiB, 1GiB, 2TiB.
type Size int64

var suffixes = []struct {
	suffix string
	octets int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

var errSize = errors.New("not a size such as 100000, 64MiB or 5GiB")

// String uses the largest unit that divides the size.
func (s *Size) String() string {
	for _, u := range suffixes {
		if n := int64(*s); n != 0 && n%u.octets == 0 {
			return strconv.FormatInt(n/u.octets, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(*s), 10)
}

// Type implements pflag.Value.
func (s *Size) Type() string { return "size" }

// Set implements flag.Value and pflag.Value. After an error the size is unchanged.
func (s *Size) Set(text string) error {
	unit := int64(1)
	for _, u := range suffixes {
		if t, ok := strings.CutSuffix(text, u.suffix); ok {
			text, unit = t, u.octets
			break
		}
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n > uint64(math.MaxInt64/unit) {
		return errSize
	}
	*s = Size(int64(n) * unit)
	return nil
}
