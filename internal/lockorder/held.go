//go:build lockorder

package lockorder

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// A lock is a mutex that a goroutine holds.
type lock struct {
	goroutine uint64
	mutex     unsafe.Pointer
	rank      Rank
	callers   [8]uintptr // of Lock
}

// held is what all goroutines hold. Its memory is used again, so that tests that count allocations
// pass.
var held struct {
	sync.Mutex
	locks []lock
}

// inOrder panics if the goroutine holds a mutex under which one of this rank must not be locked.
func inOrder(goroutine uint64, rank Rank) {
	level := levelOf(rank)
	held.Lock()
	defer held.Unlock()
	for i := range held.locks {
		if l := &held.locks[i]; l.goroutine == goroutine && levelOf(l.rank) >= level {
			panic(fmt.Sprintf("lockorder: %s locked at %s under %s, which was locked at %s",
				name(rank), place(callers()), name(l.rank), place(l.callers)))
		}
	}
}

// locked notes that the goroutine has locked a mutex.
func locked(goroutine uint64, mutex unsafe.Pointer, rank Rank) {
	held.Lock()
	defer held.Unlock()
	held.locks = append(held.locks, lock{goroutine, mutex, rank, callers()})
}

// unlocked notes that a mutex is unlocked, by whichever goroutine.
func unlocked(mutex unsafe.Pointer) {
	held.Lock()
	defer held.Unlock()
	i := slices.IndexFunc(held.locks, func(l lock) bool { return l.mutex == mutex })
	if i < 0 {
		return // and sync.Mutex says so
	}
	last := len(held.locks) - 1
	held.locks[i], held.locks[last] = held.locks[last], lock{}
	held.locks = held.locks[:last]
}

// levelOf is the place of a rank in the order.
func levelOf(rank Rank) int {
	level := slices.Index(order, rank)
	if level < 0 {
		panic("lockorder: " + name(rank) + " is not in the order")
	}
	return level
}

func name(rank Rank) string { return reflect.TypeOf(rank).Name() }

// callers are the functions that have led here, from that on which has called Lock.
func callers() (pcs [8]uintptr) {
	const skip = 3 // runtime.Callers, callers, and inOrder or locked
	runtime.Callers(skip, pcs[:])
	return pcs
}

// place is where the first caller is that is not of this package or of package sync, whose Cond
// locks and unlocks.
func place(callers [8]uintptr) string {
	frames := runtime.CallersFrames(callers[:])
	for {
		f, more := frames.Next()
		if !more || !strings.HasPrefix(f.Function, "sync.") && !strings.Contains(f.Function, "lockorder.(*Mutex") {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
	}
}
