package iwarp_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// TestRDMAP_49_50_EmptySendTakesOneReceive is an example of a conversation: in virtual time, over the in-memory pipe.
func TestRDMAP_49_50_EmptySendTakesOneReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSide(t, nil)
		_, mr := s.register(8, stag.LocalWrite, nil)
		cq, err := s.rnic.CreateCQ(2 * iwarp.DefaultDepth)
		require.NoError(t, err)
		p, qp := initiator(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd, RecvCQ: cq, SendCQ: cq})
		require.NoError(t, qp.PostRecv(iwarp.RecvWR{ID: 1, Local: []iwarp.SGE{mr.Slice(0, 8)}}, iwarp.RecvWR{ID: 2, Local: []iwarp.SGE{mr.Slice(0, 8)}}))

		p.SendHex("an empty Send", "41 43 00000000 00000000 00000001 00000000")
		p.SendHex("a Send of two octets", "41 43 00000000 00000000 00000002 00000000", 'h', 'i')
		var wcs [2]iwarp.WC
		for i := range wcs {
			_, err := cq.Wait(testContext(t), wcs[i:i+1])
			require.NoError(t, err)
		}
		require.Equal(t, []uint64{1, 2}, []uint64{wcs[0].ID, wcs[1].ID}, "each Send took one receive")
		require.Equal(t, []uint32{0, 2}, []uint32{wcs[0].Len, wcs[1].Len})

		require.NoError(t, qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}))
		p.WantSegment("an empty Send is one segment", "41 43 00000000 00000000 00000001 00000000")
		p.WantIdle("nothing else is sent", time.Second)
		require.NoError(t, qp.Abort())
	})
}
