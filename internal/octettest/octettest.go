// Package octettest makes octets for tests.
package octettest

import (
	"encoding/hex"
	"strings"
)

// Hex turns "00 0e c1 40" into octets; blanks, bars and line ends do not count.
func Hex(s string) []byte {
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "|", "", "\n", "", "\t", "").Replace(s))
	if err != nil {
		panic(err)
	}
	return b
}

// Counting returns n octets that count up from first.
func Counting(first byte, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = first + byte(i)
	}
	return b
}
