package wire

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rpcrdma/internal/captures"
)

// TestRPR_2_Golden reads headers of Linux, and makes the same octets of them again.
func TestRPR_2_Golden(t *testing.T) {
	all := captures.Headers(t)
	const off = 0x462cbf040e737000
	for what, want := range map[string]struct {
		header Header
		rest   int
	}{
		"NULL call: no chunks": {Header{XID: 0x3d2cbf04, Credits: 128}, 40},
		"NULL reply":           {Header{XID: 0x5b65dcd0, Credits: 32}, 24},
		"READ call: a Write chunk": {
			Header{XID: 0x462cbf04, Credits: 128, Writes: []Chunk{{{0x17358c01, 16384, off}}}}, 100,
		},
		"READDIRPLUS call: a Reply chunk of three segments": {
			Header{XID: 0x432cbf04, Credits: 128, HasReply: true, Reply: Chunk{
				{0x33370201, 124, 0x432cbf047c77d800}, {0x2eeee201, 8192, 0x432cbf040a6ea000}, {0x6cdf1601, 4, 0x432cbf047c77d87c},
			}}, 112,
		},
		"READDIRPLUS reply by the Reply chunk: NOMSG": {
			Header{XID: 0x2be93fc6, Credits: 32, Proc: NoMsg, HasReply: true, Reply: Chunk{
				{0xa30ad602, 124, 0x2be93fc67c1b0000}, {0x5c492902, 2564, 0x2be93fc67c7c1000}, {0xa2847701, 0, 0x2be93fc67c1b007c},
			}}, 0,
		},
		"READ reply: the pad segment was not written": {
			Header{XID: 0x6d65dcd0, Credits: 32, Writes: []Chunk{{{0x44d69704, 7003, 0x6d65dcd0028f7000}, {0xff375b01, 0, 0x531672c}}}}, 128,
		},
		"WRITE call: a Read chunk of 1 MiB at position 108": {
			Header{XID: 0x562cbf04, Credits: 128, Reads: []ReadSegment{{108, Segment{0x1876d008, 1 << 20, 0x562cbf040e143000}}}}, 108,
		},
	} {
		b := all[what]
		require.NotEmpty(t, b, what)
		h, n := parsed(t, b)
		require.Equal(t, want.rest, len(b)-n, what)
		require.Equal(t, n, h.Len(), what)
		require.Equal(t, b[:n], h.Append(nil), what)
		want.header.Version = Version
		require.Equal(t, b[:n], want.header.Append(nil), "%s: the same in words", what)
	}
	for what, b := range all {
		h, n := parsed(t, b)
		require.Equal(t, b[:n], h.Append(nil), what)
	}
}

// TestRPR_2_ReadGolden reads a header field by field.
func TestRPR_2_ReadGolden(t *testing.T) {
	h, _ := parsed(t, captures.Headers(t)["READ call of 7003 octets: a Write chunk with a pad segment"])
	require.Equal(t, []Chunk{{{Handle: 0x44d69704, Length: 7003, Offset: 0x6d65dcd0028f7000}, {Handle: 0xff375b01, Length: 4, Offset: 0x531672c}}}, h.Writes)
	require.Empty(t, h.Reads)
	require.False(t, h.HasReply)
	require.Equal(t, Msg, h.Proc)
	require.EqualValues(t, 0x6d65dcd0, h.XID)
	require.EqualValues(t, 128, h.Credits)
}

// TestRPR_2_Cut cuts each captured header at each length.
func TestRPR_2_Cut(t *testing.T) {
	for what, b := range captures.Headers(t) {
		_, n := parsed(t, b)
		for k := range n {
			_, err := new(Header).Parse(b[:k])
			if k < 16 {
				require.ErrorIs(t, err, ErrShort, "%s, %d octets", what, k)
			} else {
				require.ErrorIs(t, err, ErrMalformed, "%s, %d octets", what, k)
			}
		}
	}
}

// words makes a message of words.
func words(w ...uint32) []byte { return appendWords(nil, w...) }

// TestRPR_2_Malformed: malformed headers are refused, and nothing is allocated for them.
func TestRPR_2_Malformed(t *testing.T) {
	const big = math.MaxUint32
	for what, b := range map[string][]byte{
		"MSGP":                             words(1, 1, 1, 2, 0, 0, 0),
		"an unknown procedure":             words(1, 1, 1, 5, 0, 0, 0),
		"a Read list that goes on with 2":  words(1, 1, 1, 0, 2, 0, 7, 8, 0, 0, 0, 0, 0),
		"a Write list that goes on with 2": words(1, 1, 1, 0, 0, 2, 0, 0, 0),
		"a Reply chunk after 3":            words(1, 1, 1, 0, 0, 0, 3, 0),
		"2^32-1 segments":                  words(1, 1, 1, 0, 0, 1, big, 0, 0),
		"one segment too many":             words(1, 1, 1, 0, 0, 0, 1, 2, 7, 8, 0, 0),
		"a Read segment that wraps":        words(1, 1, 1, 0, 1, 4, 7, 2, big, big, 0, 0, 0),
		"a Write segment that wraps":       words(1, 1, 1, 0, 0, 1, 1, 7, 2, big, big, 0, 0),
		"a Reply segment that wraps":       words(1, 1, 1, 0, 0, 0, 1, 1, 7, big, big, 2),
	} {
		h := &Header{}
		_, err := h.Parse(b)
		require.ErrorIs(t, err, ErrMalformed, what)
		require.EqualValues(t, 1, h.XID, what)
		require.LessOrEqual(t, cap(h.segments), 2, what)
	}
	_, err := new(Header).Parse(words(1, 1, 1, 0, 1, 4, 7, 2, big, big-2, 0, 0, 0))
	require.NoError(t, err, "it ends before 2^64-1")
	_, err = new(Header).Parse(words(1, 1, 1, 0, 0, 0, 1, 0))
	require.NoError(t, err, "a Reply chunk without segments")
}

// TestRPR_2_FixedPart: headers of which only the fixed part is read.
func TestRPR_2_FixedPart(t *testing.T) {
	for _, p := range []Proc{Done, Failure} {
		h, n := parsed(t, words(9, 1, 32, uint32(p)))
		require.Equal(t, 16, n)
		require.Equal(t, p, h.Proc)
	}
	h := new(Header)
	_, err := h.Parse(words(9, 2, 32, 99))
	require.ErrorIs(t, err, ErrVersion)
	require.EqualValues(t, 2, h.Version)
}

// TestRPR_2_Failures are the octets of errors of the transport.
func TestRPR_2_Failures(t *testing.T) {
	require.Equal(t, octets("00000009 00000007 00000020 00000004 00000001 00000001 00000001"), AppendVersionFailure(nil, 9, 7, 32))
	require.Equal(t, octets("00000009 00000001 00000020 00000004 00000002"), AppendChunkFailure(nil, 9, 32))
	require.LessOrEqual(t, len(AppendVersionFailure(nil, 9, 7, 32)), FailureLen)
}

// TestRPR_2_Reuse: a header forgets the chunks of the message before.
func TestRPR_2_Reuse(t *testing.T) {
	all := captures.Headers(t)
	h := new(Header)
	for range 3 {
		for what, b := range all {
			n, err := h.Parse(b)
			require.NoError(t, err)
			require.Equal(t, b[:n], h.Append(nil), what)
		}
	}
	b := all["READDIRPLUS call: a Reply chunk of three segments"]
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = h.Parse(b) }))
}

// TestRPR_11_OneHandle counts the distinct handles of a header.
func TestRPR_11_OneHandle(t *testing.T) {
	s := func(handle uint32) Segment { return Segment{Handle: handle, Length: 4} }
	for what, c := range map[string]struct {
		h  Header
		ok bool
	}{
		"none":                   {Header{}, false},
		"one Read segment":       {Header{Reads: []ReadSegment{{4, s(7)}}}, true},
		"the same twice":         {Header{Reads: []ReadSegment{{4, s(7)}, {4, s(7)}}}, true},
		"two Read segments":      {Header{Reads: []ReadSegment{{4, s(7)}, {4, s(8)}}}, false},
		"one Write segment":      {Header{Writes: []Chunk{{s(7)}}}, true},
		"the same everywhere":    {Header{Reads: []ReadSegment{{4, s(7)}}, Writes: []Chunk{{s(7)}}, Reply: Chunk{s(7)}, HasReply: true}, true},
		"a pad segment":          {Header{Writes: []Chunk{{s(7), s(8)}}}, false},
		"two Write chunks":       {Header{Writes: []Chunk{{s(7)}, {s(8)}}}, false},
		"a Write and a Reply":    {Header{Writes: []Chunk{{s(7)}}, Reply: Chunk{s(8)}, HasReply: true}, false},
		"three Reply segments":   {Header{Reply: Chunk{s(7), s(8), s(9)}, HasReply: true}, false},
		"handle 0 and another":   {Header{Reads: []ReadSegment{{4, s(0)}}, Writes: []Chunk{{s(8)}}}, false},
		"chunks without segment": {Header{Writes: []Chunk{{}}, HasReply: true}, false},
	} {
		handle, ok := c.h.OneHandle()
		require.Equal(t, c.ok, ok, what)
		if ok {
			require.EqualValues(t, 7, handle, what)
		}
	}
}

// FuzzHeader: Append reproduces what Parse takes, and also private data.
func FuzzHeader(f *testing.F) {
	for _, b := range captures.Headers(f) {
		f.Add(b)
	}
	f.Add(words(1, 1, 1, 0, 0, 1, math.MaxUint32))
	f.Add([]byte{0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3})
	f.Add([]byte{0xf6, 0xab, 0x0e, 0x18, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		p := ParsePrivate(b)
		require.Equal(t, p, ParsePrivate(p.Append(nil)))
		h := new(Header)
		n, err := h.Parse(b)
		if h.Proc == Failure && len(b) >= fixedLen {
			_, _ = ParseFailure(b)
		}
		if err != nil || h.Proc == Done || h.Proc == Failure {
			return
		}
		require.Equal(t, n, h.Len())
		require.Equal(t, b[:n], h.Append(nil))
		require.EqualValues(t, binary.BigEndian.Uint32(b), h.XID)
		h.OneHandle()
	})
}
