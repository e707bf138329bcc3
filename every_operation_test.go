package iwarp

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/stag"
)

// TestEveryOperation does each operation, waits for what tells that it has arrived, and looks
// at what it has done.
func TestEveryOperation(t *testing.T) {
	const n, rounds = 30_000, 4
	client, server := committers(t)
	ctx := testContext(t)
	done := make(map[Op]int)
	do := func(qp *QP, wr SendWR) WC {
		t.Helper()
		done[wr.Op]++
		wc, err := doOne(ctx, qp, wr)
		require.NoError(t, err, wr.Op)
		return wc
	}
	received := func(s *side) WC {
		t.Helper()
		wcs := make([]WC, 1)
		_, err := s.qp.RecvCQ().Wait(ctx, wcs)
		require.NoError(t, err)
		require.NoError(t, wcs[0].Err())
		return wcs[0]
	}

	disk := new(medium)
	src, srcMR := client.register(n, stag.LocalWrite, nil)
	back, backMR := client.register(n, stag.LocalWrite, nil)
	in, inMR := server.register(n, stag.LocalWrite, nil)
	dst, dstMR := server.register(n, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead|stag.RemoteAtomic, &MROptions{Durable: disk})
	from, to := []SGE{srcMR.Slice(0, n)}, dstMR.Advertise(0, n)
	lent, lentMR := client.register(n, lendable, nil)
	mw, err := client.pd.AllocMW()
	require.NoError(t, err)
	sinkMR, err := client.pd.AllocMR(n, stag.LocalWrite, nil)
	require.NoError(t, err)

	for round := range rounds {
		fillRandom(src)
		do(client.qp, SendWR{Op: OpRDMAWrite, Local: from, Remote: to})
		do(client.qp, SendWR{Op: OpRDMARead, Local: []SGE{backMR.Slice(0, n)}, Remote: to})
		require.Equal(t, src, back)

		require.NoError(t, server.qp.PostRecv(RecvWR{Local: []SGE{inMR.Slice(0, n)}}))
		do(client.qp, SendWR{Op: OpSend, Local: from})
		require.EqualValues(t, n, received(server).Len)
		require.Equal(t, src, in)

		imm := [8]byte{byte(round), 7}
		require.NoError(t, server.qp.PostRecv(RecvWR{}, RecvWR{}))
		do(client.qp, SendWR{Op: OpImmediate, Imm: imm})
		require.Equal(t, imm, received(server).Imm)
		fillRandom(src)
		do(client.qp, SendWR{Op: OpRDMAWriteImm, Local: from, Remote: to, Imm: imm})
		require.Equal(t, imm, received(server).Imm)
		require.Equal(t, src, dst, "the Write is there when its Immediate is")

		was := binary.NativeEndian.Uint64(dst)
		require.Equal(t, was, do(client.qp, SendWR{Op: OpFetchAdd, Remote: to, Add: 5}).Old)
		require.Equal(t, was+5, do(client.qp, SendWR{Op: OpCompareSwap, Remote: to, Compare: was + 5, Swap: 9}).Old)
		require.EqualValues(t, 9, do(client.qp, SendWR{Op: OpSwap, Remote: to, Swap: 11}).Old)
		require.EqualValues(t, 11, binary.NativeEndian.Uint64(dst))

		do(client.qp, SendWR{Op: OpCommit, Regions: []RemoteBuffer{dstMR.Advertise(0, 100)}})
		require.Equal(t, commit.Range{Off: 0, Len: 100}, disk.ranges()[round])

		sink := make([]byte, n)
		do(client.qp, SendWR{Op: OpRegister, MR: sinkMR, Memory: sink, Access: stag.LocalWrite})
		do(client.qp, SendWR{Op: OpRDMAReadInvalidate, Local: []SGE{sinkMR.Slice(0, n)}, Remote: to})
		require.Equal(t, dst, sink)
		do(client.qp, SendWR{Op: OpRegister, MR: sinkMR, Memory: sink, Access: stag.LocalWrite})
		do(client.qp, SendWR{Op: OpLocalInvalidate, MR: sinkMR})

		do(client.qp, SendWR{Op: OpBind, MW: mw, Local: []SGE{lentMR.Slice(0, n)}, Access: stag.RemoteWrite})
		do(server.qp, SendWR{Op: OpRDMAWrite, Local: []SGE{inMR.Slice(0, n)}, Remote: mw.Advertise(0, n)})
		require.NoError(t, client.qp.PostRecv(RecvWR{}))
		lentAs := mw.STag()
		do(server.qp, SendWR{Op: OpSendInvalidate, Invalidate: lentAs})
		require.Equal(t, lentAs, received(client).STag)
		require.Equal(t, in, lent)
	}
	for op := OpSend; op < OpRecv; op++ {
		require.GreaterOrEqual(t, done[op], rounds, op)
	}
	require.NoError(t, client.qp.Close())
	<-server.qp.Done()
	require.NoError(t, server.qp.Err())
}
