package iwarp_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

var errFull = errors.New("no space left")

// A fullDisk is a Buffer whose every access fails.
type fullDisk struct{}

func (fullDisk) Size() int64                        { return 8 }
func (fullDisk) ReadAt([]byte, int64) (int, error)  { return 0, errFull }
func (fullDisk) WriteAt([]byte, int64) (int, error) { return 0, errFull }

// TestVERBS_73_BufferThatFails: the work request that has used it completes with the status of a
// local failure. The error wraps the Buffer's error, and matches no sentinel that blames an STag, or
// a missing ability of the QP.
func TestVERBS_73_BufferThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		begins func(k *talk, disk []iwarp.SGE) // what is posted, and what the peer sends
		code   uint16
	}{
		"the source of a Send": {func(k *talk, disk []iwarp.SGE) {
			k.posts(iwarp.SendWR{Op: iwarp.OpSend, Local: disk})
		}, 0x0000},
		"the source of an RDMA Write": {func(k *talk, disk []iwarp.SGE) {
			k.posts(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: disk, Remote: remote})
		}, 0x0000},
		"the sink of an RDMA Read": {func(k *talk, disk []iwarp.SGE) {
			k.posts(iwarp.SendWR{Op: iwarp.OpRDMARead, Local: disk, Remote: remote})
			k.p.Segment()
			k.p.Send(wiretest.ReadResponse(0xc1, disk[0].MR.STag(), 0, "12345678"))
		}, 0x1000},
		"the memory of a receive": {func(k *talk, disk []iwarp.SGE) {
			require.NoError(k, k.qp.PostRecv(iwarp.RecvWR{Local: disk}))
			k.p.Send(wiretest.Send(1, 0, "12345678"))
		}, 0x1000},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newTalk(t, iwarp.QPConfig{}, nil)
				mr, err := k.pd.RegisterBuffer(fullDisk{}, stag.LocalWrite, nil)
				require.NoError(t, err)
				c.begins(k, []iwarp.SGE{mr.Slice(0, 8)})
				k.wantTerminate("a local error", c.code)
				wc := k.completes(k.cq, 1)[0]
				require.Equal(t, iwarp.StatusLocalOp, wc.Status)
				require.ErrorIs(t, wc.Err(), errFull)
				require.NotErrorIs(t, wc.Err(), iwarp.ErrInvalidSTag, "the STag is valid")
				require.NotErrorIs(t, wc.Err(), iwarp.ErrUnsupported, "the QP can do it")
			})
		})
	}
}
