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
	callers   [8]uintptr // the stack of the call of Lock
}

// held lists the mutexes that all goroutines hold. Its memory is reused, so that tests that count
// allocations pass.
var held struct {
	sync.Mutex
	locks []lock
}

// inOrder panics if the goroutine holds a mutex under which a mutex of this rank must not be locked.
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

// locked records that the goroutine has locked a mutex.
func locked(goroutine uint64, mutex unsafe.Pointer, rank Rank) {
	held.Lock()
	defer held.Unlock()
	held.locks = append(held.locks, lock{goroutine, mutex, rank, callers()})
}

// unlocked records that a mutex is unlocked, by any goroutine.
func unlocked(mutex unsafe.Pointer) {
	held.Lock()
	defer held.Unlock()
	i := slices.IndexFunc(held.locks, func(l lock) bool { return l.mutex == mutex })
	if i < 0 {
		return // sync.Mutex reports the error
	}
	last := len(held.locks) - 1
	held.locks[i], held.locks[last] = held.locks[last], lock{}
	held.locks = held.locks[:last]
}

// levelOf returns the place of a rank in the order.
func levelOf(rank Rank) int {
	level := slices.Index(order, rank)
	if level < 0 {
		panic("lockorder: " + name(rank) + " is not in the order")
	}
	return level
}

func name(rank Rank) string { return reflect.TypeOf(rank).Name() }

// callers returns the call stack, beginning at the caller of Lock.
func callers() (pcs [8]uintptr) {
	const skip = 3 // runtime.Callers, callers, and inOrder or locked
	runtime.Callers(skip, pcs[:])
	return pcs
}

// place returns the position of the first caller outside this package and package sync, whose
// Cond locks and unlocks.
func place(callers [8]uintptr) string {
	frames := runtime.CallersFrames(callers[:])
	for {
		f, more := frames.Next()
		if !more || !strings.HasPrefix(f.Function, "sync.") && !strings.Contains(f.Function, "lockorder.(*Mutex") {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
	}
}
