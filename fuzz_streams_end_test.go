package iwarp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

const (
	streamOps  = 8    // operations of one side at most, and its receives
	streamSlot = 2048 // octets of each
	streamPart = streamOps * streamSlot
	streamGap  = 64
)

// The parts of the memory of an end. Between them lie canaries.
const (
	partTarget = iota // the peer writes it
	partSource        // the peer reads it
	partRecv
	partSink
	streamParts
)

// streamSizes are the sizes of operations.
var streamSizes = [...]int{0, 1, 17, 600, streamSlot}

// A streamOp is an operation that was posted.
type streamOp struct {
	op  iwarp.Op
	len int
	msn int // of what takes a receive: which one it is
}

// A streamEnd is one end, and what it posts.
type streamEnd struct {
	*side
	program []byte
	peer    *streamEnd
	arena   []byte
	mrs     [streamParts]*iwarp.MR
	spare   *iwarp.MR // of the target, for the peer to invalidate
	ops     []streamOp
	done    map[uint64]iwarp.WC
	taken   map[uint64]iwarp.WC // of receives
}

func newStreamEnd(t *testing.T, program []byte) *streamEnd {
	e := &streamEnd{side: newSide(t, nil), program: program, done: make(map[uint64]iwarp.WC), taken: make(map[uint64]iwarp.WC)}
	e.arena = bytes.Repeat([]byte{canary}, streamGap+streamParts*(streamPart+streamGap))
	copy(e.part(partSource), octetsOf(streamPart, 1))
	for i, access := range [streamParts]stag.Access{
		partTarget: stag.LocalWrite | stag.RemoteWrite | stag.RemoteAtomic, partSource: stag.RemoteRead, partRecv: stag.LocalWrite, partSink: stag.LocalWrite,
	} {
		e.mrs[i] = e.registers(i, access, nil)
	}
	return e
}

// part is the memory of a part.
func (e *streamEnd) part(i int) []byte {
	at := streamGap + i*(streamPart+streamGap)
	return e.arena[at:][:streamPart:streamPart]
}

func (e *streamEnd) slot(part, i int) []byte { return e.part(part)[i*streamSlot:][:streamSlot] }

func (e *streamEnd) registers(i int, access stag.Access, opts *iwarp.MROptions) *iwarp.MR {
	mr, err := e.pd.RegisterMR(e.part(i), access, opts)
	require.NoError(e, err)
	return mr
}

// octetsOf is n octets, other ones for each seed.
func octetsOf(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)*7 + byte(i>>8) + seed
	}
	return b
}

// prepares posts the receives, and registers what the peer may invalidate.
func (e *streamEnd) prepares(_ context.Context, qp *iwarp.QP) error {
	e.spare = e.registers(partTarget, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{QP: qp})
	for i := range streamOps {
		if err := qp.PostRecv(iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{e.mrs[partRecv].Slice(i*streamSlot, streamSlot)}}); err != nil {
			return err
		}
	}
	return nil
}

// posts posts the program: the upper four bits of an octet are the size of an operation, the lower ones which it is.
// Nothing may be posted any more if the QP has ended meanwhile.
func (e *streamEnd) posts() {
	messages := 0
	for i, b := range e.program {
		n := streamSizes[int(b>>4)%len(streamSizes)]
		wr := iwarp.SendWR{ID: uint64(i), Inline: octetsOf(n, byte(i)), Op: [...]iwarp.Op{
			iwarp.OpSend, iwarp.OpRDMAWrite, iwarp.OpRDMARead, iwarp.OpRDMAWriteImm, iwarp.OpImmediate, iwarp.OpFetchAdd, iwarp.OpCompareSwap,
			iwarp.OpSendInvalidate,
		}[b&7]}
		target := e.peer.mrs[partTarget].Advertise(i*streamSlot, streamSlot)
		switch wr.Op {
		case iwarp.OpRDMAWrite, iwarp.OpRDMAWriteImm:
			wr.Remote = target
		case iwarp.OpRDMARead:
			wr.Inline, wr.Remote = nil, e.peer.mrs[partSource].Advertise(i*streamSlot, n)
			if n > 0 {
				wr.Local = []iwarp.SGE{e.mrs[partSink].Slice(i*streamSlot, n)}
			}
		case iwarp.OpImmediate:
			n, wr.Inline = 0, nil
		case iwarp.OpFetchAdd, iwarp.OpCompareSwap:
			n, wr.Inline, wr.Remote = 8, nil, target
			wr.Add, wr.Compare, wr.Swap = 1, canaries, canaries+1
		case iwarp.OpSendInvalidate:
			if wr.Invalidate = e.peer.spare.STag(); e.invalidates() {
				wr.Op, wr.Invalidate = iwarp.OpSend, 0
			}
		default: // a Send
		}
		if wr.Op == iwarp.OpRDMAWriteImm || wr.Op == iwarp.OpImmediate {
			wr.Imm[7] = byte(i)
		}
		if e.qp.PostSend(wr) != nil {
			return
		}
		o := streamOp{op: wr.Op, len: n}
		if wr.Op.TakesReceive() {
			o.msn = messages
			messages++
		}
		e.ops = append(e.ops, o)
	}
}

// canaries is what an atomic operation finds.
const canaries = canary * 0x0101010101010101

// invalidates reports whether the peer's STag is already spent.
func (e *streamEnd) invalidates() bool {
	return slices.ContainsFunc(e.ops, func(o streamOp) bool { return o.op == iwarp.OpSendInvalidate })
}

// collects takes the completions: each request has one.
func (e *streamEnd) collects() {
	var wcs [64]iwarp.WC
	for _, wc := range wcs[:e.qp.SendCQ().Poll(wcs[:])] {
		require.Less(e, wc.ID, uint64(len(e.ops)))
		require.NotContains(e, e.done, wc.ID, "it completes once")
		e.done[wc.ID] = wc
	}
	for _, wc := range wcs[:e.qp.RecvCQ().Poll(wcs[:])] {
		require.NotContains(e, e.taken, wc.ID, "it completes once")
		e.taken[wc.ID] = wc
	}
	require.Len(e, e.done, len(e.ops), "each request completes")
	require.Len(e, e.taken, streamOps, "each receive completes")
}

// wantGuards checks what the peer may not change.
func (e *streamEnd) wantGuards() {
	require.Equal(e, octetsOf(streamPart, 1), e.part(partSource), "what may only be read")
	for i := range streamParts + 1 {
		at := i * (streamPart + streamGap)
		require.Equal(e, streamGap, bytes.Count(e.arena[at:][:streamGap], []byte{canary}), "what is between the regions")
	}
	for i := range streamOps {
		if i >= len(e.ops) || e.ops[i].op != iwarp.OpRDMARead {
			require.Equal(e, streamSlot, bytes.Count(e.slot(partSink, i), []byte{canary}), "where no Read was to go")
		}
	}
}

// wantRight checks what has succeeded.
func (e *streamEnd) wantRight() {
	for i, o := range e.ops {
		wc := e.done[uint64(i)]
		if wc.Status != iwarp.StatusSuccess {
			continue
		}
		switch o.op {
		case iwarp.OpRDMARead:
			want := bytes.Repeat([]byte{canary}, streamSlot)
			copy(want, e.peer.slot(partSource, i)[:o.len])
			require.Equal(e, want, e.slot(partSink, i), "Read %d", i)
		case iwarp.OpFetchAdd, iwarp.OpCompareSwap:
			require.Equal(e, uint64(canaries), wc.Old)
		default: // nothing comes back
		}
	}
	for i, o := range e.peer.ops {
		wc, ok := e.taken[uint64(o.msn)]
		if !o.op.TakesReceive() || !ok || wc.Status != iwarp.StatusSuccess {
			continue
		}
		want := bytes.Repeat([]byte{canary}, streamSlot)
		if wc.Op == iwarp.OpRecvImm {
			require.Equal(e, [8]byte{7: byte(i)}, wc.Imm)
		} else {
			require.EqualValues(e, o.len, wc.Len)
			copy(want, octetsOf(o.len, byte(i)))
		}
		require.Equal(e, want, e.slot(partRecv, o.msn), "message %d", o.msn)
	}
}

// wantAll checks that everything has succeeded, and is where it belongs.
func (e *streamEnd) wantAll() {
	messages := 0
	for i, o := range e.ops {
		require.Equal(e, iwarp.StatusSuccess, e.done[uint64(i)].Status, "%v", o.op)
		want := bytes.Repeat([]byte{canary}, streamSlot)
		switch o.op {
		case iwarp.OpRDMAWrite, iwarp.OpRDMAWriteImm:
			copy(want, octetsOf(o.len, byte(i)))
		case iwarp.OpFetchAdd, iwarp.OpCompareSwap:
			binary.NativeEndian.PutUint64(want, canaries+1)
		default: // nothing is written
		}
		require.Equal(e, want, e.peer.slot(partTarget, i), "%v", o.op)
		if o.op.TakesReceive() {
			require.Equal(e, iwarp.StatusSuccess, e.peer.taken[uint64(o.msn)].Status)
			messages++
		}
		if o.op == iwarp.OpSendInvalidate {
			require.Equal(e, e.peer.spare.STag(), e.peer.taken[uint64(o.msn)].STag)
		}
	}
	for i := messages; i < streamOps; i++ {
		require.Equal(e, iwarp.StatusFlushed, e.peer.taken[uint64(i)].Status)
	}
}
