package tasks

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waits starts a goroutine that waits for g.
func waits(g *Group) (over *atomic.Bool) {
	over = new(atomic.Bool)
	go func() {
		g.Wait()
		over.Store(true)
	}()
	return over
}

func TestWaitOfAnEmptyGroup(t *testing.T) {
	var g Group
	g.Wait()
	require.Zero(t, g.Count())
	ended := make(chan struct{})
	g.Start(func() { close(ended) })
	<-ended
	g.Wait()
	require.Zero(t, g.Count())
}

func TestWaitIsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group
		a, b := make(chan struct{}), make(chan struct{})
		g.Start(func() { <-a })
		g.Launch(g.Task(func() { <-b }))
		first, second := waits(&g), waits(&g)
		require.Equal(t, 2, g.Count())
		close(a)
		synctest.Wait()
		require.Equal(t, 1, g.Count())
		require.False(t, first.Load())
		require.False(t, second.Load())
		close(b)
		synctest.Wait()
		require.True(t, first.Load(), "each that waits is told")
		require.True(t, second.Load())
		require.Zero(t, g.Count())
	})
}

// TestGroupGrowsWhileAGoroutineWaits: each task that ends starts the next one.
func TestGroupGrowsWhileAGoroutineWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 5
		var g Group
		ran := 0
		next := make(chan struct{})
		var start func()
		start = g.Starter(func() {
			<-next
			if ran++; ran < n {
				start()
			}
		})
		start()
		over := waits(&g)
		for i := range n {
			synctest.Wait()
			require.False(t, over.Load(), "%d have run", i)
			require.Equal(t, 1, g.Count())
			next <- struct{}{}
		}
		synctest.Wait()
		require.True(t, over.Load())
		require.Equal(t, n, ran)
	})
}

// TestGroupFallsToZeroAndGrowsAgain: it does so before the waiting goroutine has looked, which is woken, and may then
// return or wait on.
func TestGroupFallsToZeroAndGrowsAgain(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			var g Group
			g.Add(1)
			over := waits(&g)
			synctest.Wait()
			g.Add(-1)
			g.Add(1)
			synctest.Wait()
			g.Add(-1)
			synctest.Wait()
			require.True(t, over.Load())
		})
	}
}

func TestTaskThatPanicsHasEnded(t *testing.T) {
	var g Group
	g.Add(1)
	require.Panics(t, g.Task(func() { panic("as a Buffer may") }))
	require.Zero(t, g.Count())
}

func TestLaunchDoesNotAllocate(t *testing.T) {
	var g Group
	task := g.Task(func() {})
	start := g.Starter(func() {})
	for range 100 { // so that the runtime has goroutines to spare
		start()
	}
	g.Wait()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		g.Launch(task)
		start()
		for g.Count() > 0 { // Wait would allocate
			runtime.Gosched()
		}
	}))
}
