package iwarp_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// TestAttackAmplifiedReads: RDMA Reads of some fifty octets ask for much. The peer gets at most the IRD times
// what it may read, at the pace at which it reads, and the counters show it.
func TestAttackAmplifiedReads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const ird, size = 2, 4 << 20
		v := newVictim(t, iwarp.QPConfig{IRD: ird})
		_, large := v.register(size, stag.LocalWrite|stag.RemoteRead, nil)
		asked := 0
		for msn := range uint32(ird) {
			request := wiretest.ReadRequest(msn+1, 1, 0, size, large.STag(), 0)
			asked += len(request)
			v.p.Send(request)
		}
		synctest.Wait()
		sent := v.qp.Stats().Sent.ReadResponse
		require.Less(t, sent.Octets, uint64(1<<20), "nothing is made ready that the peer does not take")
		require.Zero(t, sent.Messages)
		v.othersLive()

		got := uint64(0)
		for got < ird*size {
			segment := v.p.Segment()
			require.EqualValues(t, 0x42, segment[1], "it is part of an answer")
			got += uint64(len(segment) - 14)
		}
		require.EqualValues(t, ird*size, got)
		synctest.Wait()
		stats := v.qp.Stats()
		require.EqualValues(t, ird, stats.Received.ReadRequest.Messages)
		require.Equal(t, iwarp.Traffic{Messages: ird, Octets: ird * size}, stats.Sent.ReadResponse, "the ratio is told")

		v.p.Send(wiretest.ReadRequest(ird+1, 1, 0, size+1, large.STag(), 0))
		require.Less(t, len(v.p.Segment()), 2*asked, "what is refused is answered by a Terminate, and by nothing more")
		v.p.WantEOF("which is the last message")
		v.p.Close()
		<-v.qp.Done()
		v.othersLive()
	})
}
