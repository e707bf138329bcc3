package iwarp_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/stag"
)

// TestEveryOperation does each operation, waits for the confirmation that it has arrived, and
// checks its effect.
func TestEveryOperation(t *testing.T) {
	const n, rounds = 30_000, 4
	client, server := committers(t)
	ctx := testContext(t)
	done := make(map[iwarp.Op]int)
	do := func(qp *iwarp.QP, wr iwarp.SendWR) iwarp.WC {
		t.Helper()
		done[wr.Op]++
		wc, err := doOne(ctx, qp, wr)
		require.NoError(t, err, wr.Op)
		return wc
	}
	received := func(s *side) iwarp.WC {
		t.Helper()
		wcs := make([]iwarp.WC, 1)
		_, err := s.qp.RecvCQ().Wait(ctx, wcs)
		require.NoError(t, err)
		require.NoError(t, wcs[0].Err())
		return wcs[0]
	}

	disk := new(medium)
	src, srcMR := client.register(n, stag.LocalWrite, nil)
	back, backMR := client.register(n, stag.LocalWrite, nil)
	in, inMR := server.register(n, stag.LocalWrite, nil)
	dst, dstMR := server.register(n, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead|stag.RemoteAtomic, &iwarp.MROptions{Durable: disk})
	from, to := []iwarp.SGE{srcMR.Slice(0, n)}, dstMR.Advertise(0, n)
	lent, lentMR := client.register(n, lendable, nil)
	mw, err := client.pd.AllocMW()
	require.NoError(t, err)
	sinkMR, err := client.pd.AllocMR(n, stag.LocalWrite, nil)
	require.NoError(t, err)

	for round := range rounds {
		fillRandom(src)
		do(client.qp, iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: from, Remote: to})
		do(client.qp, iwarp.SendWR{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{backMR.Slice(0, n)}, Remote: to})
		require.Equal(t, src, back)

		require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{Local: []iwarp.SGE{inMR.Slice(0, n)}}))
		do(client.qp, iwarp.SendWR{Op: iwarp.OpSend, Local: from})
		require.EqualValues(t, n, received(server).Len)
		require.Equal(t, src, in)

		imm := [8]byte{byte(round), 7}
		require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{}, iwarp.RecvWR{}))
		do(client.qp, iwarp.SendWR{Op: iwarp.OpImmediate, Imm: imm})
		require.Equal(t, imm, received(server).Imm)
		fillRandom(src)
		do(client.qp, iwarp.SendWR{Op: iwarp.OpRDMAWriteImm, Local: from, Remote: to, Imm: imm})
		require.Equal(t, imm, received(server).Imm)
		require.Equal(t, src, dst, "the Write is there when its Immediate is")

		was := binary.NativeEndian.Uint64(dst)
		require.Equal(t, was, do(client.qp, iwarp.SendWR{Op: iwarp.OpFetchAdd, Remote: to, Add: 5}).Old)
		require.Equal(t, was+5, do(client.qp, iwarp.SendWR{Op: iwarp.OpCompareSwap, Remote: to, Compare: was + 5, Swap: 9}).Old)
		require.EqualValues(t, 9, do(client.qp, iwarp.SendWR{Op: iwarp.OpSwap, Remote: to, Swap: 11}).Old)
		require.EqualValues(t, 11, binary.NativeEndian.Uint64(dst))

		do(client.qp, iwarp.SendWR{Op: iwarp.OpCommit, Regions: []iwarp.RemoteBuffer{dstMR.Advertise(0, 100)}})
		require.Equal(t, commit.Range{Off: 0, Len: 100}, disk.ranges()[round])

		sink := make([]byte, n)
		do(client.qp, iwarp.SendWR{Op: iwarp.OpRegister, MR: sinkMR, Memory: sink, Access: stag.LocalWrite})
		do(client.qp, iwarp.SendWR{Op: iwarp.OpRDMAReadInvalidate, Local: []iwarp.SGE{sinkMR.Slice(0, n)}, Remote: to})
		require.Equal(t, dst, sink)
		do(client.qp, iwarp.SendWR{Op: iwarp.OpRegister, MR: sinkMR, Memory: sink, Access: stag.LocalWrite})
		do(client.qp, iwarp.SendWR{Op: iwarp.OpLocalInvalidate, MR: sinkMR})

		do(client.qp, iwarp.SendWR{Op: iwarp.OpBind, MW: mw, Local: []iwarp.SGE{lentMR.Slice(0, n)}, Access: stag.RemoteWrite})
		do(server.qp, iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{inMR.Slice(0, n)}, Remote: mw.Advertise(0, n)})
		require.NoError(t, client.qp.PostRecv(iwarp.RecvWR{}))
		lentAs := mw.STag()
		do(server.qp, iwarp.SendWR{Op: iwarp.OpSendInvalidate, Invalidate: lentAs})
		require.Equal(t, lentAs, received(client).STag)
		require.Equal(t, in, lent)
	}
	for i := range 256 {
		op := iwarp.Op(i)
		if exists := !strings.HasPrefix(op.String(), "Op("); exists && op != iwarp.OpRecv && op != iwarp.OpRecvImm {
			require.GreaterOrEqual(t, done[op], rounds, "the number of times that this test posts %v: it needs a step for each operation", op)
		}
	}
	require.NoError(t, client.qp.Close())
	<-server.qp.Done()
	require.NoError(t, server.qp.Err())
}
