//go:build !amd64 || purego

package crc32c

import "testing"

// A way is a form of the computation; here there is only one.
type way struct{ name string }

var ways = []way{{"stdlib"}}

func (way) possible() bool { return true }

func (way) force(testing.TB) {}
