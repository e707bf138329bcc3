//go:build !purego

package crc32c

import "testing"

// A way is a form of the computation that a test forces.
type way struct {
	name string
	form cpuForm
}

var ways = []way{{"stdlib", stdlib}, {"avx2", avx2}, {"avx512", avx512}}

// possible reports whether this processor supports the way.
func (w way) possible() bool { return w.form <= best() }

// force makes the package compute that way until the test is over.
func (w way) force(t testing.TB) {
	if !w.possible() {
		t.Skip("this processor has no VPCLMULQDQ of that width")
	}
	old := form
	form = w.form
	t.Cleanup(func() { form = old })
}
