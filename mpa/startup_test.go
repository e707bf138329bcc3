package mpa

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var frameVectors = []struct {
	name, wire string
	reply      bool
	frame      Frame
}{
	{"R1", frameR1, false, Frame{CRC: true, Revision: 1, PrivateData: []byte{}}},
	{"R2", frameR2, true, Frame{CRC: true, Revision: 1, PrivateData: []byte{}}},
	{"R3", frameR3, true, Frame{CRC: true, Reject: true, Revision: 1, PrivateData: []byte("no")}},
	{"R4", frameR4, false, Frame{Markers: true, CRC: true, Revision: 1, PrivateData: []byte("abcd")}},
	{"R5", frameR5, false, Frame{CRC: true, Enhanced: true, Revision: 2, PrivateData: []byte{0x80, 0x10, 0xc0, 0x08}}},
	{"R6", frameR6, true, Frame{CRC: true, Enhanced: true, Revision: 2, PrivateData: []byte{0x80, 0x08, 0x80, 0x10}}},
	{"R7", frameR7, false, Frame{CRC: true, Enhanced: true, Revision: 2, PrivateData: []byte("\x3f\xff\x3f\xffhi")}},
	{"R8", frameR8, true, Frame{CRC: true, Reject: true, Enhanced: true, Revision: 2, PrivateData: []byte{0xc0, 0x01, 0x00, 0x40}}},
}

// parse and appendTo are those of a Request or of a Reply.
func parse(reply bool) func([]byte) (Frame, int, error) {
	if reply {
		return ParseReplyHeader
	}
	return ParseRequestHeader
}

func appendTo(reply bool, f *Frame, b []byte) []byte {
	if reply {
		return f.AppendReply(b)
	}
	return f.AppendRequest(b)
}

func TestFrameVectors(t *testing.T) {
	for _, v := range frameVectors {
		wire := unhex(v.wire)
		require.Equal(t, wire, appendTo(v.reply, &v.frame, nil), "%s on the wire", v.name)
		f, n, err := parse(v.reply)(wire)
		require.NoError(t, err, v.name)
		require.Equal(t, len(wire)-HeaderSize, n, "private data of %s", v.name)
		f.PrivateData = wire[HeaderSize:]
		require.Equal(t, v.frame, f, "%s parsed", v.name)
		for cut := range HeaderSize {
			_, _, err := parse(v.reply)(wire[:cut])
			require.Error(t, err, "%s cut to %d octets", v.name, cut)
		}
		_, _, err = parse(!v.reply)(wire)
		require.Error(t, err, "%s in the wrong role", v.name)
	}
}

func TestFrameCodecDoesNotAllocate(t *testing.T) {
	wire := unhex(frameR5)
	buf := make([]byte, 0, 64)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		f, _, _ := ParseRequestHeader(wire)
		f.PrivateData = wire[HeaderSize:]
		buf = f.AppendRequest(buf[:0])
	}), "allocations of a codec round trip")
}

// TestFramesMayComeInPieces: TCP keeps no boundaries, of a Reply either.
func TestFramesMayComeInPieces(t *testing.T) {
	for _, n := range []int{1, 7, 15, 19} {
		request := &script{reads: pieces(unhex(frameR4), n)}
		r, err := ReadRequest(t.Context(), request)
		require.NoError(t, err, "a Request in pieces of %d octets", n)
		require.Equal(t, "abcd", string(r.PrivateData()))
		reply := &script{reads: pieces(unhex(frameR6), n)}
		_, terms, err := Connect(t.Context(), reply, Options{}, 16, 8, nil)
		require.NoError(t, err, "a Reply in pieces of %d octets", n)
		require.Equal(t, 16, terms.IRD)
	}
}
