package plan

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

const credits = 32

// chunk makes a chunk of segments with lengths, at handles from first on.
func chunk(first uint32, lengths ...uint32) (c wire.Chunk) {
	for i, n := range lengths {
		c = append(c, wire.Segment{Handle: first + uint32(i), Length: n, Offset: 1000 * uint64(i+1)})
	}
	return c
}

func lengths(c wire.Chunk) (all []uint32) {
	for _, s := range c {
		all = append(all, s.Length)
	}
	return all
}

// written is what a plan writes, by handle.
func written(r *Reply, msg []byte) map[uint32][]byte {
	all := make(map[uint32][]byte)
	for _, w := range r.Writes {
		for _, s := range w.Spans {
			all[w.Handle] = append(all[w.Handle], msg[s.Off:s.Off+s.Len]...)
		}
	}
	return all
}

func inlineOf(r *Reply, msg []byte) (b []byte) {
	for _, s := range r.Inline {
		b = append(b, msg[s.Off:s.Off+s.Len]...)
	}
	return b
}

// TestRPR_7_WriteChunk: the opaque goes over the segments, and not its pad.
func TestRPR_7_WriteChunk(t *testing.T) {
	for _, c := range []struct {
		n             int
		room, lengths []uint32
	}{
		{0, []uint32{8}, []uint32{0}},
		{5, []uint32{5, 4}, []uint32{5, 0}},
		{5, []uint32{8}, []uint32{5}},
		{5, []uint32{2, 0, 2, 7, 9}, []uint32{2, 0, 2, 1, 0}},
		{8, []uint32{math.MaxUint32, math.MaxUint32}, []uint32{8, 0}},
	} {
		msg, at := message(c.n, 8)
		h := &wire.Header{XID: 7, Credits: 128, Writes: []wire.Chunk{chunk(1, c.room...), chunk(50, 9, 9)}}
		var r Reply
		require.NoError(t, r.Make(h, len(msg), Result{Off: at, Len: c.n, OK: true}, credits, 1024))
		require.Equal(t, c.lengths, lengths(r.Header.Writes[0]))
		require.Equal(t, []uint32{0, 0}, lengths(r.Header.Writes[1]), "the whole list comes back")
		var data []byte
		for i := range c.room {
			data = append(data, written(&r, msg)[uint32(1+i)]...)
		}
		require.Equal(t, string(msg[at:at+c.n]), string(data))
		for _, w := range r.Writes {
			require.NotZero(t, w.Spans[0].Len+w.Spans[1].Len, "no RDMA Write without octets")
		}
		require.Equal(t, slices.Concat(msg[:at], msg[at+wire.Padded(c.n):]), inlineOf(&r, msg), "no pad inline")
		require.Equal(t, wire.Msg, r.Header.Proc)
		require.EqualValues(t, 7, r.Header.XID)
		require.EqualValues(t, credits, r.Header.Credits)
		require.Empty(t, r.Header.Reads)
	}
}

// TestRPR_7_NoResult: the reply returns the Write list with lengths of zero.
func TestRPR_7_NoResult(t *testing.T) {
	msg, _ := message(5, 8)
	var r Reply
	h := &wire.Header{Writes: []wire.Chunk{chunk(1, 5, 4)}}
	require.NoError(t, r.Make(h, len(msg), Result{}, credits, 1024))
	require.Equal(t, []uint32{0, 0}, lengths(r.Header.Writes[0]))
	require.Equal(t, msg, inlineOf(&r, msg))
	require.Empty(t, r.Writes)
}

// TestRPR_7_EmptyWriteChunk: a chunk without segments leaves the opaque in the message, and is returned unchanged.
func TestRPR_7_EmptyWriteChunk(t *testing.T) {
	msg, at := message(5, 8)
	for _, h := range []*wire.Header{
		{Writes: []wire.Chunk{{}}},
		{Writes: []wire.Chunk{{}, chunk(1, 5, 4)}},
		{Writes: []wire.Chunk{{}}, HasReply: true, Reply: chunk(9, 5000)},
	} {
		chunks := len(h.Writes)
		var r Reply
		require.NoError(t, r.Make(h, len(msg), Result{Off: at, Len: 5, OK: true}, credits, 1024))
		require.Len(t, r.Header.Writes, chunks)
		require.Empty(t, r.Header.Writes[0])
		require.Equal(t, msg, inlineOf(&r, msg))
		require.Empty(t, r.Writes)
	}
}

// TestRPR_7_BadResult: the result of a Binding is checked.
func TestRPR_7_BadResult(t *testing.T) {
	for _, res := range []Result{{Off: -4, Len: 4}, {Off: 2, Len: 4}, {Off: 4, Len: -1}, {Off: 4, Len: 37}, {Off: 44}, {Off: 4, Len: math.MaxInt}, {Off: math.MaxInt &^ 3, Len: 4}} {
		res.OK = true
		var r Reply
		require.ErrorIs(t, r.Make(&wire.Header{Writes: []wire.Chunk{chunk(1, 100)}}, 40, res, credits, 1024), ErrChunk, "%+v", res)
	}
	for n, want := range map[int]error{40: nil, 39: ErrChunk} {
		var r Reply
		err := r.Make(&wire.Header{Writes: []wire.Chunk{chunk(1, 100)}}, n, Result{Off: 4, Len: 35, OK: true}, credits, 1024)
		require.ErrorIs(t, err, want, "the pad of the opaque is a part of the reply")
	}
}

// TestRPR_5_Threshold: a reply up to the threshold is inline, a longer one goes by the chunk.
func TestRPR_5_Threshold(t *testing.T) {
	const threshold = 1024
	const room = threshold - wire.MinLen - wire.ReplyLen // the header returns the chunk
	var r Reply                                          // used again
	for _, n := range []int{room, room + 1, room} {
		inline := n == room
		h := &wire.Header{HasReply: true, Reply: chunk(1, 4000)}
		require.NoError(t, r.Make(h, n, Result{}, credits, threshold))
		require.True(t, r.Header.HasReply)
		if inline {
			require.Equal(t, wire.Msg, r.Header.Proc)
			require.Equal(t, []uint32{0}, lengths(r.Header.Reply), "it was not used")
			require.Equal(t, [2]Span{{0, n}}, r.Inline)
			require.Empty(t, r.Writes)
			require.Equal(t, threshold, r.Header.Len()+n)
			continue
		}
		require.Equal(t, wire.NoMsg, r.Header.Proc)
		require.Equal(t, [2]Span{}, r.Inline)
		require.Equal(t, []uint32{uint32(n)}, lengths(r.Header.Reply))
	}
}

// TestRPR_8_ReplyChunk: a message over three segments with odd cuts, as a whole and without an opaque.
func TestRPR_8_ReplyChunk(t *testing.T) {
	msg, at := message(701, 700)
	for _, room := range [][]uint32{{124, 8192, 4}, {1, 3, 5000}, {743, 2, 1200}, {2000}, {0, 2000}, {744, 1, 1, 1300}} {
		for _, res := range []Result{{}, {Off: at, Len: 701, OK: true}} {
			h := &wire.Header{HasReply: true, Reply: chunk(1, room...)}
			rest := msg
			if res.OK {
				h.Writes = []wire.Chunk{chunk(90, 300, 401)}
				rest = slices.Concat(msg[:at], msg[at+704:])
			}
			var r Reply
			require.NoError(t, r.Make(h, len(msg), res, credits, 300))
			require.Equal(t, wire.NoMsg, r.Header.Proc)
			all := written(&r, msg)
			var got []byte
			for i := range room {
				require.Len(t, all[uint32(1+i)], int(r.Header.Reply[i].Length))
				got = append(got, all[uint32(1+i)]...)
			}
			require.Equal(t, rest, got)
			if res.OK {
				require.Equal(t, msg[at:at+701], slices.Concat(all[90], all[91]))
			}
		}
	}
}

// TestHeaderOfALongReplyIsBounded: if all of a reply is in the Reply chunk, its header may have as many octets as a message.
func TestHeaderOfALongReplyIsBounded(t *testing.T) {
	var r Reply
	plans := func(threshold int) error {
		return r.Make(&wire.Header{HasReply: true, Reply: chunk(1, 2000)}, 1400, Result{}, credits, threshold)
	}
	require.NoError(t, plans(1024))
	exact := r.Header.Len()
	require.NoError(t, plans(exact))
	require.ErrorIs(t, plans(exact-1), ErrChunk)
}

// TestRPR_9_NoRoom: a reply that fits nowhere is an error.
func TestRPR_9_NoRoom(t *testing.T) {
	msg, at := message(701, 700)
	res := Result{Off: at, Len: 701, OK: true}
	for what, c := range map[string]struct {
		h         wire.Header
		res       Result
		threshold int
	}{
		"no chunk":                    {wire.Header{}, Result{}, 1024},
		"a Reply chunk too short":     {wire.Header{HasReply: true, Reply: chunk(1, 1000, 400)}, Result{}, 1024},
		"an empty Reply chunk":        {wire.Header{HasReply: true}, Result{}, 1024},
		"a Write chunk too short":     {wire.Header{Writes: []wire.Chunk{chunk(1, 700)}}, res, 1024},
		"the rest is still too long":  {wire.Header{Writes: []wire.Chunk{chunk(1, 701)}}, res, 600},
		"the header does not fit":     {wire.Header{HasReply: true, Reply: chunk(1, slices.Repeat([]uint32{100}, 100)...)}, Result{}, 1024},
		"a Write chunk for no result": {wire.Header{Writes: []wire.Chunk{chunk(1, 5000)}}, Result{}, 1024},
	} {
		var r Reply
		require.ErrorIs(t, r.Make(&c.h, len(msg), c.res, credits, c.threshold), ErrChunk, what)
	}
}

// TestRPR_19_ReplyWithoutAllocation plans again and again.
func TestRPR_19_ReplyWithoutAllocation(t *testing.T) {
	msg, at := message(701, 0)
	h := &wire.Header{Writes: []wire.Chunk{chunk(1, 300, 401)}}
	var r Reply
	again := func() {
		h.Writes[0][0].Length, h.Writes[0][1].Length = 300, 401
		if r.Make(h, len(msg), Result{Off: at, Len: 701, OK: true}, credits, 1024) != nil {
			panic("a plan that fails")
		}
	}
	again()
	require.Zero(t, testing.AllocsPerRun(100, again))
}

// FuzzReply: a plan writes each octet once, and only where the client lets it.
func FuzzReply(f *testing.F) {
	f.Add(uint16(100), uint16(44), uint16(20), uint16(5), uint16(90), uint16(3), uint16(200), uint16(120))
	f.Add(uint16(5000), uint16(128), uint16(4096), uint16(4096), uint16(4), uint16(124), uint16(8192), uint16(1024))
	f.Fuzz(func(t *testing.T, n, off, length, w1, w2, r1, r2, threshold uint16) {
		h := &wire.Header{Writes: []wire.Chunk{chunk(1, uint32(w1), uint32(w2))}, HasReply: true, Reply: chunk(11, uint32(r1), uint32(r2))}
		room := map[uint32]int{1: int(w1), 2: int(w2), 11: int(r1), 12: int(r2)}
		var r Reply
		if r.Make(h, int(n), Result{Off: int(off), Len: int(length), OK: off%2 == 0}, credits, int(threshold)) != nil {
			return
		}
		covered := make([]int, n)
		total := 0
		use := func(s Span) {
			for i := range s.Len {
				covered[s.Off+i]++
			}
			total += s.Len
		}
		for _, w := range r.Writes {
			use(w.Spans[0])
			use(w.Spans[1])
			room[w.Handle] -= w.Spans[0].Len + w.Spans[1].Len
			require.GreaterOrEqual(t, room[w.Handle], 0)
		}
		sent := r.Header.Len()
		for _, s := range r.Inline {
			use(s)
			sent += s.Len
		}
		require.LessOrEqual(t, sent, int(threshold))
		for _, k := range covered {
			require.LessOrEqual(t, k, 1)
		}
		require.LessOrEqual(t, int(n)-total, 3, "all but a pad goes")
	})
}
