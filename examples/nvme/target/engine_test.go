package target

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// TestNVME_25_ConnectIdentifyWriteReadFlush takes the plain path.
func TestNVME_25_ConnectIdentifyWriteReadFlush(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		s := newHost(t, w.addr).connect(1)
		require.EqualValues(t, 2*capsule.ConnectDataSize, w.target.Stats().Fetched, "the data of Connect is fetched")
		page := make([]byte, 4096)
		s.admin.ok(capsule.Identify{CNS: capsule.CNSController}.SQE(0, s.admin.writable(page)))
		id, err := capsule.ParseIdentifyController(page)
		require.NoError(t, err)
		require.Equal(t, storage, id.SubNQN)
		require.Equal(t, s.cntlid, id.CNTLID)
		q := s.io[0]
		small, large, got := pattern(lba, 1), pattern(255*lba, 2), make([]byte, 255*lba)
		require.Equal(t, capsule.Success, q.writeInside(7, small).Status)
		require.Equal(t, capsule.Success, q.write(100, large).Status)
		require.Equal(t, capsule.Success, q.read(7, got[:lba]).Status)
		require.Equal(t, small, got[:lba])
		require.Equal(t, capsule.Success, q.read(100, got).Status)
		require.Equal(t, large, got)
		q.ok(capsule.FlushSQE(0, 1))
		q.ok(capsule.FlushSQE(0, capsule.BroadcastNSID))
	})
}
