package cm

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// TestCM_48_49_ABreakAmongDeadTargets: every tenth of a thousand targets is dead, and the loop is
// left in the middle. No goroutine, descriptor or QP is left.
func TestCM_48_49_ABreakAmongDeadTargets(t *testing.T) {
	const most = 500
	h := listens(t, "tcp", "127.0.0.1:0", 0)
	client := newEnd(t, iwarp.Limits{})
	before, goroutines := descriptors(t), runtime.NumGoroutine()
	established, failed := 0, 0
	for _, r := range DialMany(t.Context(), tenthDead(h), &Options{RNIC: client.rnic, QP: client.config(), Ordered: true}) {
		if r.Err == nil {
			require.NoError(t, r.QP.Abort())
			established++
		} else {
			failed++
		}
		if established+failed == most {
			break
		}
	}
	require.Equal(t, most/10, failed)
	require.Equal(t, most-most/10, established)
	waitsForDescriptors(t, before)
	client.waitsUntilIdle()
	// The RNICs may keep some for further connections. Those of require.Eventually would count.
	deadline := time.Now().Add(30 * time.Second)
	for runtime.NumGoroutine() > goroutines+4 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+4)
}
