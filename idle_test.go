//go:build linux && !purego

package iwarp_test

import (
	"context"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// TestIdleQPHasNoGoroutineAndLittleMemory: over TCP, where the system reports input.
func TestIdleQPHasNoGoroutineAndLittleMemory(t *testing.T) {
	if runtime.GOOS != "linux" || raceorder.Enabled {
		t.Skip("elsewhere a QP keeps its reader; the race detector takes memory of its own")
	}
	const rounds, pairs = 5, 40
	client, server := newSide(t, nil), newSide(t, nil)
	_, mr := server.register(8, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
	ctx := t.Context()
	l, err := server.rnic.Listen(ctx, "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	go func() {
		for {
			cr, err := l.Accept(ctx)
			if err != nil {
				return
			}
			if _, err := cr.Accept(ctx, &iwarp.QPConfig{PD: server.pd}); err != nil {
				t.Error(err)
			}
		}
	}()
	alone := client.rnic.Tasks() + server.rnic.Tasks()
	qps := make([]*iwarp.QP, 0, 5+rounds*pairs)
	use := func(n int) {
		for range n {
			ctx, cancel := context.WithTimeout(ctx, wiretest.Patience) // for each one, since this machine may be slow
			defer cancel()
			qp, err := client.rnic.Dial(ctx, "tcp", l.Addr().String(), &iwarp.QPConfig{PD: client.pd})
			require.NoError(t, err)
			require.NoError(t, qp.RDMAWrite(ctx, mr.Advertise(0, 0)))
			require.NoError(t, qp.RDMARead(ctx, iwarp.SGE{}, iwarp.RemoteBuffer{}), "it has been used")
			qps = append(qps, qp)
		}
		require.Eventually(t, func() bool { return client.rnic.Tasks()+server.rnic.Tasks() == alone },
			wiretest.Patience, time.Millisecond, "no QP has a goroutine")
	}
	use(5)
	goroutines := runtime.NumGoroutine()
	// Shared memory, above all kept buffers, grows now and then with the number of connections that were busy at once. A
	// connection's own memory grows with each connection.
	least := int64(math.MaxInt64)
	for range rounds {
		memory := inUse()
		use(pairs)
		least = min(least, int64(inUse()-memory)/pairs)
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+2 }, wiretest.Patience, time.Millisecond,
		"%d goroutines before, %d with idle QPs", goroutines, runtime.NumGoroutine())
	t.Logf("%d octets for both ends of an idle connection", least)
	require.LessOrEqual(t, least, int64(16<<10), "octets for both ends")
	require.NoError(t, l.Close())
	require.NoError(t, qps[rounds*pairs].Send(context.Background()), "they are alive")
	runtime.KeepAlive(qps)
}

// inUse returns how much memory is reachable.
func inUse() uint64 {
	for range 3 { // pools release their items in two steps
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
