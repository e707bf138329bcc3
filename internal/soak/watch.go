package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// usage holds the resources that the process uses.
type usage struct {
	heap        int // octets that are reachable
	goroutines  int
	descriptors int // -1: unknown on this system
}

// heapGrowth is how much more of the heap may be in use at the end than at the beginning.
const heapGrowth = 16 << 20

func (u usage) String() string {
	return fmt.Sprintf("heap %.1f MiB, %d goroutines, %d descriptors", float64(u.heap)/(1<<20), u.goroutines, u.descriptors)
}

// growth returns an error that says which part of u has grown, nil if none has.
func (u usage) growth(before usage) error {
	switch {
	case u.goroutines > before.goroutines:
		return fmt.Errorf("%d goroutines are left", u.goroutines-before.goroutines)
	case u.descriptors > before.descriptors:
		return fmt.Errorf("%d descriptors are left", u.descriptors-before.descriptors)
	case u.heap > before.heap+heapGrowth:
		return fmt.Errorf("the heap has grown by %d octets, %d are allowed", u.heap-before.heap, heapGrowth)
	}
	return nil
}

// measure measures what is in use, after garbage collection.
func measure() usage {
	runtime.GC() // the second one frees what the first one took from pools
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := usage{heap: int(m.HeapAlloc), goroutines: runtime.NumGoroutine(), descriptors: -1}
	if all, err := os.ReadDir("/proc/self/fd"); err == nil {
		u.descriptors = len(all) - 1 // the one that reads the directory
	}
	return u
}

// settleWait is how long something that nothing waits for may take to end.
const settleWait = 20 * time.Second

// settle measures until there is no growth, but not for longer than settleWait.
func settle(before usage) (usage, error) {
	for end := time.Now().Add(settleWait); ; time.Sleep(20 * time.Millisecond) {
		u := measure()
		err := u.growth(before)
		if err == nil || time.Now().After(end) {
			return u, err
		}
	}
}

// steady measures until the numbers of goroutines and descriptors no longer change, but not for longer than settleWait.
func steady() usage {
	before := measure()
	for end := time.Now().Add(settleWait); ; {
		time.Sleep(50 * time.Millisecond)
		u := measure()
		if u.goroutines == before.goroutines && u.descriptors == before.descriptors || time.Now().After(end) {
			return u
		}
		before = u
	}
}
