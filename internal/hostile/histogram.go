package main

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// A histogram counts times in classes of 1/16 of a power of two. Its zero value is empty; any goroutine may use it.
type histogram struct {
	classes [64 * 16]atomic.Uint64
}

// class returns the class of a time.
func class(d time.Duration) int {
	n := uint64(max(d, 16))
	exponent := bits.Len64(n) - 1
	return exponent*16 + int(n>>(exponent-4))&15
}

func (h *histogram) add(d time.Duration) { h.classes[class(d)].Add(1) }

func (h *histogram) count() (n uint64) {
	for i := range h.classes {
		n += h.classes[i].Load()
	}
	return n
}

// quantile is the upper end of the class in which a part of the times ends.
func (h *histogram) quantile(part float64) time.Duration {
	rest := uint64(float64(h.count()) * part)
	for i := range h.classes {
		n := h.classes[i].Load()
		if n > rest {
			return time.Duration(uint64(i%16+17) << (i/16 - 4))
		}
		rest -= n
	}
	return 0
}
