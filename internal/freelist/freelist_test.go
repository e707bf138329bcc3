package freelist

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
)

// collect runs the garbage collector twice: a pool drops its items at the second collection.
func collect() {
	runtime.GC()
	runtime.GC()
}

func TestWhatIsGivenBackIsLentAgain(t *testing.T) {
	l := List[int]{Retain: 2, New: func() *int { return new(int) }}
	a, b := l.Get(), l.Get()
	require.NotSame(t, a, b)
	l.Put(a)
	l.Put(b)
	require.Same(t, b, l.Get(), "what was used last is in a cache")
	require.Same(t, a, l.Get())
	require.NotSame(t, a, l.Get(), "it is lent once")
}

func TestACollectionLeavesWhatIsKept(t *testing.T) {
	l := List[int]{Retain: 2}
	kept := [2]*int{new(int), new(int)}
	l.Put(kept[0])
	l.Put(kept[1])
	l.Put(new(int))
	collect()
	require.Same(t, kept[1], l.Get())
	require.Same(t, kept[0], l.Get())
	require.Nil(t, l.Get(), "more than that was the collector's")
}

func TestWithoutNewThereIsNone(t *testing.T) {
	l := List[int]{Retain: 1}
	require.Nil(t, l.Get())
}

// TestWhatIsLentIsNotKept: the collector frees an item that its user forgets.
func TestWhatIsLentIsNotKept(t *testing.T) {
	l := List[[64]int]{Retain: 1}
	l.Put(new([64]int))
	lent := weak.Make(l.Get())
	collect()
	require.Nil(t, lent.Value())
	require.Nil(t, l.Get())
}

// TestNothingIsAllocatedAfterACollection: that is what retained items are for.
func TestNothingIsAllocatedAfterACollection(t *testing.T) {
	l := List[int]{Retain: 1, New: func() *int { return new(int) }}
	l.Put(l.Get())
	var before, after runtime.MemStats
	for range 3 {
		collect()
		runtime.ReadMemStats(&before)
		for range 100 {
			l.Put(l.Get())
		}
		runtime.ReadMemStats(&after)
		if after.Mallocs == before.Mallocs {
			return
		}
	}
	require.Equal(t, before.Mallocs, after.Mallocs, "three times in a row")
}

func TestGetAndPutDoNotWaitForTheLock(t *testing.T) {
	l := List[int]{Retain: 1, New: func() *int { return new(int) }}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Put(l.Get())
	require.NotNil(t, l.Get())
}

func TestNoTwoHaveTheSame(t *testing.T) {
	l := List[atomic.Int32]{Retain: 2, New: func() *atomic.Int32 { return new(atomic.Int32) }}
	var shared atomic.Int32
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for range 2000 {
				x := l.Get()
				if x.Add(1) != 1 {
					shared.Add(1)
				}
				runtime.Gosched()
				x.Add(-1)
				l.Put(x)
			}
		})
	}
	users.Wait()
	require.Zero(t, shared.Load())
}
