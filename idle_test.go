//go:build linux && !purego

package iwarp

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

// TestIdleQPHasNoGoroutineAndLittleMemory: on TCP, where the system tells when there
// is something to read.
func TestIdleQPHasNoGoroutineAndLittleMemory(t *testing.T) {
	if runtime.GOOS != "linux" || raceEnabled {
		t.Skip("elsewhere a QP keeps its reader; the race detector takes memory of its own")
	}
	const pairs = 200
	client, server := newSide(t, nil), newSide(t, nil)
	_, mr := server.register(8, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
	ctx := testContext(t)
	l, err := server.rnic.Listen(ctx, "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	go func() {
		for {
			cr, err := l.Accept(ctx)
			if err != nil {
				return
			}
			if _, err := cr.Accept(ctx, &QPConfig{PD: server.pd}); err != nil {
				t.Error(err)
			}
		}
	}()
	qps := make([]*QP, 0, pairs)
	use := func(n int) {
		for range n {
			qp, err := client.rnic.Dial(ctx, "tcp", l.Addr().String(), &QPConfig{PD: client.pd})
			require.NoError(t, err)
			require.NoError(t, qp.RDMAWrite(ctx, mr.Advertise(0, 0)))
			require.NoError(t, qp.RDMARead(ctx, SGE{}, RemoteBuffer{}), "it has been used")
			qps = append(qps, qp)
		}
	}
	use(5) // what all share is there now
	goroutines, memory := atRest(), inUse()
	use(pairs)
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+2 }, patience, time.Millisecond,
		"%d goroutines before, %d with idle QPs", goroutines, runtime.NumGoroutine())
	each := int64(inUse()-memory) / pairs
	t.Logf("%d octets for both ends of an idle connection", each)
	require.LessOrEqual(t, each, int64(16<<10), "octets for both ends")
	require.NoError(t, l.Close())
	require.NoError(t, qps[pairs].Send(context.Background()), "they are alive")
	runtime.KeepAlive(qps)
}

// atRest counts goroutines once those that are about to leave have left.
func atRest() int {
	least := runtime.NumGoroutine()
	for range 50 {
		time.Sleep(time.Millisecond)
		least = min(least, runtime.NumGoroutine())
	}
	return least
}

// inUse tells how much memory is reachable.
func inUse() uint64 {
	for range 3 { // pools let go of what they have in two steps
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
