package main

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// A size is a number of octets, for people: 4096, 512KiB, 4MiB.
type size int64

var units = []struct {
	suffix string
	octets int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

var errSize = errors.New("not a size such as 4096, 512KiB, 4MiB or 1GiB")

// String uses the largest unit that divides the size.
func (s *size) String() string {
	for _, u := range units {
		if n := int64(*s); n != 0 && n%u.octets == 0 {
			return strconv.FormatInt(n/u.octets, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(*s), 10)
}

// Set is for package flag.
func (s *size) Set(text string) error {
	unit := int64(1)
	for _, u := range units {
		if t, ok := strings.CutSuffix(text, u.suffix); ok {
			text, unit = t, u.octets
			break
		}
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n > uint64(math.MaxInt64/unit) {
		return errSize
	}
	*s = size(int64(n) * unit)
	return nil
}
