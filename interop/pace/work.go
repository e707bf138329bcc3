package pace

import (
	"sync"
	"sync/atomic"
	"time"
)

// processors is the number of processors on which the work is done: as many as the guest has.
const processors = 2

// The work, and how long it takes on an idle machine of the kind for which the limits were chosen.
// An idle guest needs as long as its host, even if QEMU emulates the processors, which do register
// arithmetic nearly as fast as real ones.
const (
	rounds = 12_000_000
	usual  = 30 * time.Millisecond
)

// OfMachine returns a Gauge of the machine that the program runs on, either the host or a guest.
func OfMachine() *Gauge { return New(slowness) }

// slowness does the work on all processors at once, and compares the time with the usual one.
func slowness() float64 {
	began := time.Now()
	var running sync.WaitGroup
	for range processors {
		running.Go(func() { result.Store(work()) })
	}
	running.Wait()
	return float64(time.Since(began)) / float64(usual)
}

// result keeps the compiler from removing the work.
var result atomic.Uint64

// work is a chain of operations, each of which depends on the previous one and uses no memory.
func work() uint64 {
	x := uint64(1)
	for range rounds {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}
