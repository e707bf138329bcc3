package target

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// TestNVME_78_TwoForOneIdleWorker: of two commands that meet one idle worker, the second does not wait for the first.
func TestNVME_78_TwoForOneIdleWorker(t *testing.T) {
	virtual(t, func(t *testing.T) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the worker does not come between the two
		b, open := blocked(t, 1)
		w := newWorld(t, "pipe", &Config{Limits: Limits{Workers: 2}}, b)
		defer close(open)
		q := newHost(t, w.addr).connect(1).io[0]
		require.Equal(t, capsule.Success, q.read(2, make([]byte, lba)).Status)
		w.settled()
		q.send(rw(capsule.OpRead, 1, 1, q.writable(make([]byte, lba))))
		other := q.send(rw(capsule.OpRead, 2, 1, q.writable(make([]byte, lba))))
		w.settled()
		require.Equal(t, 3, b.Count(backend.CallRead), "the back end has both")
		require.Equal(t, capsule.Success, q.wait(other).Status)
	})
}
