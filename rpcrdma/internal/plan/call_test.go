package plan

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

// TestRPR_6_ReadChunk: an opaque comes in a chunk, of one segment or of several, without its pad, with it, or with it in
// a segment of its own.
func TestRPR_6_ReadChunk(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for _, tail := range []int{0, 4, 12} {
			msg, at := message(n, tail)
			end := at + wire.Padded(n)
			inline := slices.Concat(msg[:at], msg[end:])
			for pad := range end - at - n + 1 {
				c := client{}
				h := &wire.Header{Reads: c.segments(at, msg[at:at+n+pad])}
				c.gathers(t, h, inline, msg, "one segment")
				for cut := 1; cut < n+pad; cut++ {
					c := client{}
					h := &wire.Header{Reads: c.segments(at, msg[at:at+n+pad], cut)}
					c.gathers(t, h, inline, msg, "two segments")
				}
			}
		}
	}
}

// TestRPR_6_PadIsCleared: octets that a client sends as a pad are not handed up.
func TestRPR_6_PadIsCleared(t *testing.T) {
	msg, at := message(5, 0)
	c := client{}
	sent := slices.Concat(msg[at:at+5], []byte{1, 2, 3})
	c.gathers(t, &wire.Header{Reads: c.segments(at, sent)}, msg[:at], msg, "a pad of other octets")
}

// TestRPR_6_SeveralChunks: positions count in the whole message.
func TestRPR_6_SeveralChunks(t *testing.T) {
	first, at1 := message(5, 0)
	second, at2 := message(7, 8)
	msg := slices.Concat(first, second)
	at2 += len(first)
	inline := slices.Concat(msg[:at1], msg[at1+8:at2], msg[at2+8:])
	c := client{}
	h := &wire.Header{Reads: slices.Concat(c.segments(at1, msg[at1:at1+5], 2), c.segments(at2, msg[at2:at2+7]))}
	c.gathers(t, h, inline, msg, "two chunks")

	msg = append([]byte("\x00\x00\x00\x05first\x00\x00\x00"), "\x00\x00\x00\x08 another"...)
	c = client{}
	h = &wire.Header{Reads: slices.Concat(c.segments(4, msg[4:9]), c.segments(16, msg[16:24]))}
	c.gathers(t, h, slices.Concat(msg[:4], msg[12:16]), msg, "two chunks with nothing but their lengths before them")
}

// TestRPR_6_PositionZero: a message in a chunk, cut anywhere, alone and with an opaque in another chunk.
func TestRPR_6_PositionZero(t *testing.T) {
	msg, at := message(6, 12)
	for cut := 1; cut < len(msg); cut++ {
		c := client{}
		h := &wire.Header{Proc: wire.NoMsg, Reads: c.segments(0, msg, cut)}
		c.gathers(t, h, nil, msg, "the whole message")
	}
	body := slices.Concat(msg[:at], msg[at+8:])
	for cut := 1; cut < len(body); cut++ {
		for pad := range 3 {
			c := client{}
			h := &wire.Header{Proc: wire.NoMsg, Reads: slices.Concat(c.segments(0, body, cut), c.segments(at, msg[at:at+6+pad]))}
			c.gathers(t, h, nil, msg, "without an opaque")
		}
	}
}

// TestRPR_18_LengthOfAChunk: the word before the chunk decides.
func TestRPR_18_LengthOfAChunk(t *testing.T) {
	chunkOfLength(t, 5, map[int]bool{1: false, 4: false, 5: true, 6: true, 7: true, 8: true, 9: false, 12: false})
	chunkOfLength(t, 8, map[int]bool{7: false, 8: true, 9: false, 11: false, 12: false})
	msg, at := message(5, 0)
	var p Call
	msg[at-4] = 0xff
	require.ErrorIs(t, p.Make(&wire.Header{Reads: client{}.segments(at, make([]byte, 5))}, msg[:at], 1000), ErrChunk, "a length near 2^32")
}

// chunkOfLength reports whether a chunk of n octets can be an opaque of a length.
func chunkOfLength(t *testing.T, length int, want map[int]bool) {
	t.Helper()
	msg, at := message(length, 0)
	for n, ok := range want {
		c := client{}
		chunk := c.segments(at, make([]byte, n))
		var p Call
		err := p.Make(&wire.Header{Reads: chunk}, msg[:at], 1000)
		require.Equal(t, ok, err == nil, "%d octets: %v", n, err)

		h := &wire.Header{Proc: wire.NoMsg, Reads: slices.Concat(c.segments(0, msg[:at]), chunk)}
		require.NoError(t, p.Make(h, nil, 1000), "the word is not there yet")
		_, err = c.put(t, &p, nil)
		require.Equal(t, ok, err == nil, "%d octets: %v", n, err)
	}
}

func seg(position, n uint32) wire.ReadSegment {
	return wire.ReadSegment{Position: position, Segment: wire.Segment{Handle: 1, Length: n}}
}

// TestRPR_18_ChunksThatDoNotFit are all refused before anything is read.
func TestRPR_18_ChunksThatDoNotFit(t *testing.T) {
	msg, at := message(8, 0)
	inline := msg[:at]
	const big = math.MaxUint32
	p := uint32(at)
	for what, h := range map[string]wire.Header{
		"behind what is inline":           {Reads: []wire.ReadSegment{seg(p+4, 8)}},
		"no multiple of 4":                {Reads: []wire.ReadSegment{seg(p-2, 8)}},
		"position 0 with a message":       {Reads: []wire.ReadSegment{seg(0, 8)}},
		"not ascending":                   {Reads: []wire.ReadSegment{seg(p, 8), seg(p-4, 8)}},
		"a position that comes again":     {Reads: []wire.ReadSegment{seg(p, 8), seg(p+12, 8), seg(p, 8)}},
		"two chunks without a length":     {Reads: []wire.ReadSegment{seg(p, 8), seg(p+8, 8)}},
		"empty segments":                  {Reads: slices.Repeat([]wire.ReadSegment{seg(p, 0)}, 100)},
		"an empty segment among others":   {Reads: []wire.ReadSegment{seg(p, 8), seg(p, 0)}},
		"more than a call may have":       {Reads: []wire.ReadSegment{seg(p, 100000)}},
		"a sum above it":                  {Reads: []wire.ReadSegment{seg(p, 4), seg(p, big), seg(p, big), seg(p, 4)}},
		"no chunk of position 0":          {Proc: wire.NoMsg, Reads: []wire.ReadSegment{seg(p, 8)}},
		"no chunk at all":                 {Proc: wire.NoMsg},
		"position 0 of 41 octets":         {Proc: wire.NoMsg, Reads: []wire.ReadSegment{seg(0, 41)}},
		"position 0, longer than allowed": {Proc: wire.NoMsg, Reads: []wire.ReadSegment{seg(0, 100000)}},
		"position 0 is too short":         {Proc: wire.NoMsg, Reads: []wire.ReadSegment{seg(0, 40), seg(48, 8)}},
	} {
		var p Call
		follows := inline
		if h.Proc == wire.NoMsg {
			follows = nil
		}
		require.ErrorIs(t, p.Make(&h, follows, 1000), ErrChunk, what)
	}
	h := wire.Header{Proc: wire.NoMsg, Reads: []wire.ReadSegment{seg(0, 40)}}
	var c Call
	require.ErrorIs(t, c.Make(&h, inline, 1000), ErrChunk, "octets behind the header of NOMSG")
	odd := make([]byte, 42)
	odd[41] = 8
	h = wire.Header{Reads: []wire.ReadSegment{seg(42, 8)}}
	require.ErrorIs(t, c.Make(&h, odd, 1000), ErrChunk, "a position that is no multiple of 4, behind the right length")
}

// TestRPR_19_CallWithoutAllocation plans again and again.
func TestRPR_19_CallWithoutAllocation(t *testing.T) {
	msg, at := message(8, 0)
	h := wire.Header{Reads: []wire.ReadSegment{seg(uint32(at), 4), seg(uint32(at), 4)}}
	var p Call
	require.NoError(t, p.Make(&h, msg[:at], 1000))
	require.NoError(t, p.Make(&wire.Header{}, msg[:at], 1000))
	require.True(t, p.Opaques(func(int) bool { return false }), "those of the call before")
	require.NoError(t, p.Finish(make([]byte, p.Len)))
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = p.Make(&h, msg[:at], 1000) }))
}

// FuzzCall: whatever a header says, the plan covers the message once, except for pads, and stays within the limit.
func FuzzCall(f *testing.F) {
	f.Add([]byte{0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 44, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 48)
	f.Add([]byte{0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0)
	f.Fuzz(func(t *testing.T, b []byte, inline int) {
		var h wire.Header
		if _, err := h.Parse(b); err != nil {
			return
		}
		body := make([]byte, max(0, min(inline, 200)))
		if len(body) >= 48 {
			body[43] = 5
		}
		const limit = 4096
		var p Call
		if p.Make(&h, body, limit) != nil {
			return
		}
		require.LessOrEqual(t, p.Len, limit)
		covered := make([]int, p.Len)
		mark := func(at, n int) {
			require.Positive(t, n)
			for i := range n {
				covered[at+i]++
			}
		}
		for _, c := range p.Copies {
			require.LessOrEqual(t, c.From+c.Len, len(body))
			mark(c.At, c.Len)
		}
		for _, r := range p.Reads {
			mark(r.At, r.Len)
		}
		gaps := 0
		for _, n := range covered {
			require.LessOrEqual(t, n, 1)
			gaps += 1 - n
		}
		require.LessOrEqual(t, gaps, 3*len(h.Reads))
		_ = p.Finish(make([]byte, p.Len))
	})
}
