package rma

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
)

// planOf chooses the suite by the first octet of an input.
func planOf(in []byte) plan {
	if len(in) > 0 && in[0]%3 == 0 {
		return suites()["suite 0"]
	}
	return plan{}
}

// FuzzClientOfAServer: whatever a client sends that has agreed, it changes only the octets that it may
// change, and nothing is left of it.
func FuzzClientOfAServer(f *testing.F) {
	addInputs(f)
	f.Fuzz(func(t *testing.T, in []byte) { bubble(t, func(t *testing.T) { hostileClient(t, in) }) })
}

// TestRMA_28_42_HostileClient does the same with random inputs.
func TestRMA_28_42_HostileClient(t *testing.T) {
	hostileRuns(t, func(t *testing.T, in []byte) { bubble(t, func(t *testing.T) { hostileClient(t, in) }) })
}

func hostileClient(t *testing.T, in []byte) {
	const limit = 64 << 10
	p := planOf(in)
	p.server.Depth, p.server.MaxOp, p.server.ScratchLimit = 4, 512, limit
	p.server.Authorize = func(_ iwarp.Peer, region uint64, ops Ops) Ops {
		switch region {
		case readRegion:
			return ops & MayRead
		case writeRegion:
			return ops & (MayRead | MayWrite)
		default:
			return 0
		}
	}
	w := newPair(t, p)
	w.mem.Update(func(b []byte) { copy(b, "this may be read") })
	mems := make(map[uint64][]byte)
	for _, region := range []uint64{foreignRegion, writeRegion} {
		mem := bytes.Repeat([]byte{0xa5}, 3*64)
		mems[region] = mem
		_, err := w.server.Register(region, NewMemory(mem[64:128:128]), &RegionOptions{Ops: allOps})
		require.NoError(t, err)
	}
	w.serve()
	h := &hostilePeer{raw: newRaw(w), in: in, client: true, sealers: make(map[uint64][4]*regionkey.Sealer), usual: []wire.Type{
		wire.TypeOpenReq, wire.TypeReadReq, wire.TypeReadReq, wire.TypeWriteReq, wire.TypeWriteReq, wire.TypeWriteReq, wire.TypeData, wire.TypeRekeyReq,
	}}
	h.greets()
	for i, region := range []uint64{readRegion, writeRegion} {
		h.opens(op.ID(1+i), region, 7)
		var s [4]*regionkey.Sealer
		for k := regionkey.Read; k <= regionkey.Manage; k++ {
			s[k] = h.sealer(k, regionkey.Initiator)
		}
		h.sealers[region] = s
	}
	h.lends()
	go h.listens()
	for len(h.in) > 0 && h.qp.Err() == nil {
		h.acts()
		require.LessOrEqual(t, w.server.scratch.used(), limit)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	_ = h.qp.Abort()
	require.Error(t, <-w.served)
	w.wantNothingLeft()
	w.wantRegion([]byte("this may be read"))
	require.EqualValues(t, 1, w.region.Epoch())
	require.EqualValues(t, 1, w.server.region(foreignRegion).Epoch())
	require.Equal(t, len(mems[foreignRegion]), bytes.Count(mems[foreignRegion], []byte{0xa5}), "a region of others")
	for _, around := range [][]byte{mems[writeRegion][:64], mems[writeRegion][128:]} {
		require.Equal(t, 64, bytes.Count(around, []byte{0xa5}), "what is around a region")
	}
}

// FuzzServerOfAClient: whatever a server sends that has agreed, each operation ends once and changes nothing
// except its buffer, which a failed operation does not change either; and nothing is left of it.
func FuzzServerOfAClient(f *testing.F) {
	addInputs(f)
	f.Fuzz(func(t *testing.T, in []byte) { bubble(t, func(t *testing.T) { hostileServer(t, in) }) })
}

// TestRMA_28_42_HostileServer does the same with random inputs.
func TestRMA_28_42_HostileServer(t *testing.T) {
	hostileRuns(t, func(t *testing.T, in []byte) { bubble(t, func(t *testing.T) { hostileServer(t, in) }) })
}

// A postedOp is an operation of a client with a hostile server.
type postedOp struct {
	cmd   Command
	mem   []byte // the buffer with the octets around it
	ended bool
	after []byte // the buffer when it ended
}

const guardOctets = 64

func newPostedOp(h *hostilePeer, handle *Handle) *postedOp {
	n := 16 * (h.byte() % 4)
	b := &postedOp{mem: bytes.Repeat([]byte{0x5a}, n+2*guardOctets)}
	b.cmd = Command{Op: Read, Handle: handle, Off: uint64(h.byte()), Buf: b.mem[guardOctets : guardOctets+n : guardOctets+n], Direct: h.byte() > 200}
	if h.byte()%2 == 0 {
		b.cmd.Op = Write
	}
	return b
}

// ends checks the end of the operation.
func (b *postedOp) ends(t *testing.T, end *Completion, sealed bool) {
	t.Helper()
	require.False(t, b.ended)
	b.ended, b.after = true, bytes.Clone(b.cmd.Buf)
	if b.cmd.Op == Write || end.Err != nil && !b.cmd.Direct {
		require.Equal(t, len(b.cmd.Buf), bytes.Count(b.cmd.Buf, []byte{0x5a}), "%v: %v", b.cmd.Op, end.Err)
	}
	if b.cmd.Op == Read && end.Err == nil && sealed {
		require.Equal(t, len(b.cmd.Buf), bytes.Count(b.cmd.Buf, []byte{theOctets}), "what was sealed")
	}
}

// over checks that neither the buffer has changed since the end, nor the octets around it.
func (b *postedOp) over(t *testing.T) {
	t.Helper()
	require.True(t, b.ended)
	require.Equal(t, b.after, b.cmd.Buf)
	n := len(b.mem) - guardOctets
	require.Equal(t, 2*guardOctets, bytes.Count(b.mem[:guardOctets], []byte{0x5a})+bytes.Count(b.mem[n:], []byte{0x5a}))
}

func hostileServer(t *testing.T, in []byte) {
	const limit = 64 << 10
	p := planOf(in)
	p.client.ScratchLimit = limit
	w, r, handle, portal := asks(t, p, 20*time.Millisecond)
	h := &hostilePeer{raw: r, in: in, usual: []wire.Type{wire.TypeReadDone, wire.TypePull, wire.TypePull, wire.TypeWriteDone, wire.TypeWriteDone, wire.TypeStatus}}
	h.sealers = map[uint64][4]*regionkey.Sealer{regionID: {regionkey.Read: r.sealer(regionkey.Read, regionkey.Responder)}}
	h.lends()
	go h.listens()
	var ops []*postedOp
	takes := func() {
		var ends [4]Completion
		for _, e := range ends[:portal.Poll(ends[:])] {
			ops[e.Tag].ends(t, &e, h.suite != 0)
		}
		require.LessOrEqual(t, w.client.c.scratch.used(), limit)
	}
	for len(h.in) > 0 && h.qp.Err() == nil {
		if h.byte() < 80 {
			b := newPostedOp(h, handle)
			b.cmd.Tag = uint64(len(ops))
			if _, err := portal.Post(b.cmd); err == nil {
				ops = append(ops, b)
			}
			synctest.Wait()
		}
		h.acts()
		takes()
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	takes()
	_ = h.qp.Abort()
	<-w.client.Done()
	takes()
	for _, b := range ops {
		b.over(t)
	}
	w.close()
}
