package main

import (
	"sync"
	"sync/atomic"
)

// startLoad starts n goroutines that compute without pause. stop ends them.
func startLoad(n int) (stop func()) {
	var over atomic.Bool
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for x := uint64(1); !over.Load(); {
				for range 1000 {
					x ^= x << 13
					x ^= x >> 7
					x ^= x << 17
				}
				if x == 0 { // never; but the compiler must not know
					return
				}
			}
		})
	}
	return func() {
		over.Store(true)
		all.Wait()
	}
}
