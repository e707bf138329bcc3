package target

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// TestTargetThatWasStopped: after longer than the keep alive timeout, it gives up no host that it could not hear until
// then, but does give up a host that is still silent one timeout later.
func TestTargetThatWasStopped(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		s := newHost(t, w.addr).connect(1)
		s.admin.ok(capsule.SetFeatures{FID: capsule.FeatureKATO, Value: 5000}.SQE(0, capsule.NullSGL()))
		for range 3 {
			synctest.Wait()
			w.target.stopped.Add(-int64(time.Minute)) // the model goes on as if the clock had not run for so long
			time.Sleep(4 * time.Second)
			require.Equal(t, capsule.Success, s.io[0].writeInside(0, pattern(lba, 1)).Status)
		}
		time.Sleep(5*time.Second + mostLate + 2*tick)
		require.Zero(t, w.target.Stats().Queues)
	})
}
