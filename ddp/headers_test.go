package ddp

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/octettest"
	"github.com/goiwarp/iwarp/transport"
)

var unhex = octettest.Hex

// The vectors of a 2048-octet message at a MULPDU of 1500, RFC 5041's own example.
var taggedVectors = []struct {
	name, wire string
	h          TaggedHeader
}{
	{
		"Write, first segment", "81" + // T=1 L=0 Rsvd=0 DV=1
			"40" + // RsvdULP: RDMAP version 1, opcode 0
			"aabbcc01" + // STag
			"0000000000004000", // TO 16384
		TaggedHeader{RsvdULP: 0x40, STag: 0xaabbcc01, TO: 16384},
	},
	{
		"Write, last segment", "c1" + // T=1 L=1 Rsvd=0 DV=1
			"40" + // RsvdULP
			"aabbcc01" + // STag
			"00000000000045ce", // TO 17870
		TaggedHeader{Last: true, RsvdULP: 0x40, STag: 0xaabbcc01, TO: 17870},
	},
}

var untaggedVectors = []struct {
	name, wire string
	h          UntaggedHeader
}{
	{
		"Send, first segment", "01" + // T=0 L=0 Rsvd=0 DV=1
			"43 00000000" + // RsvdULP: RDMAP version 1, opcode 3; no Invalidate STag
			"00000000" + // QN 0
			"00000001" + // MSN 1
			"00000000", // MO 0
		UntaggedHeader{RsvdULP: 0x43, MSN: 1},
	},
	{
		"Send, last segment", "41" + // T=0 L=1 Rsvd=0 DV=1
			"43 00000000" + // RsvdULP
			"00000000" + // QN 0
			"00000001" + // MSN 1
			"000005ca", // MO 1482
		UntaggedHeader{Last: true, RsvdULP: 0x43, MSN: 1, MO: 1482},
	},
	{
		"Send with Invalidate", "41" + // T=0 L=1 Rsvd=0 DV=1
			"44 deadbe01" + // RsvdULP: opcode 4, Invalidate STag
			"00000000" + // QN 0
			"00000001" + // MSN 1
			"00000000", // MO 0
		UntaggedHeader{Last: true, RsvdULP: 0x44, RsvdULPWord: 0xdeadbe01, MSN: 1},
	},
	{
		"the MSN after 0xffffffff", "41" + // T=0 L=1 Rsvd=0 DV=1
			"43 00000000" + // RsvdULP
			"00000000" + // QN 0
			"00000000" + // MSN 0
			"00000000", // MO 0
		UntaggedHeader{Last: true, RsvdULP: 0x43},
	},
	{
		"every field different", "41" + // T=0 L=1 Rsvd=0 DV=1
			"f1 11223344" + // RsvdULP, all 40 bits
			"55667788" + // QN
			"99aabbcc" + // MSN
			"ddeeff01", // MO
		UntaggedHeader{Last: true, RsvdULP: 0xf1, RsvdULPWord: 0x11223344, QN: 0x55667788, MSN: 0x99aabbcc, MO: 0xddeeff01},
	},
}

func TestTaggedHeaderGolden(t *testing.T) {
	for _, v := range taggedVectors {
		wire := unhex(v.wire)
		require.Equal(t, wire, v.h.Append(nil), "%s: encoded", v.name)
		require.True(t, IsTagged(wire), "%s: T", v.name)
		require.EqualValues(t, 1, Version(wire), "%s: DV", v.name)
		h, err := ParseTagged(append(wire, "payload"...))
		require.NoError(t, err, v.name)
		require.Equal(t, v.h, h, "%s: parsed", v.name)
	}
}

func TestUntaggedHeaderGolden(t *testing.T) {
	for _, v := range untaggedVectors {
		wire := unhex(v.wire)
		require.Equal(t, wire, v.h.Append(nil), "%s: encoded", v.name)
		require.False(t, IsTagged(wire), "%s: T", v.name)
		require.EqualValues(t, 1, Version(wire), "%s: DV", v.name)
		h, err := ParseUntagged(append(wire, "payload"...))
		require.NoError(t, err, v.name)
		require.Equal(t, v.h, h, "%s: parsed", v.name)
	}
}

func TestHeaderTruncated(t *testing.T) {
	isFault := func(err error, n int) {
		var f *transport.Fault
		require.ErrorAs(t, err, &f, "%d octets are too short", n)
		require.Equal(t, transport.DDPLocalCatastrophic, f.Code, "%d octets: 1/0/00", n)
	}
	wire := bytes.Repeat([]byte{0xc1}, UntaggedLen)
	for n := range TaggedLen {
		_, err := ParseTagged(wire[:n])
		isFault(err, n)
	}
	for n := range UntaggedLen {
		_, err := ParseUntagged(wire[:n])
		isFault(err, n)
	}
	require.False(t, IsTagged(nil), "nothing is not tagged")
	require.Zero(t, Version(nil), "nothing has no version")
}

func FuzzHeaders(f *testing.F) {
	for _, v := range taggedVectors {
		f.Add(unhex(v.wire))
	}
	for _, v := range untaggedVectors {
		f.Add(unhex(v.wire))
	}
	const kept = controlTagged | controlLast // of the control octet; DV and Rsvd are ours
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := ParseTagged(b); err == nil {
			wire := h.Append(nil)
			require.Equal(t, b[1:TaggedLen], wire[1:], "a tagged header survives the round trip")
			require.Equal(t, (b[0]|controlTagged)&kept|version, wire[0], "control octet")
		}
		if h, err := ParseUntagged(b); err == nil {
			wire := h.Append(nil)
			require.Equal(t, b[1:UntaggedLen], wire[1:], "an untagged header survives the round trip")
			require.Equal(t, b[0]&controlLast|version, wire[0], "control octet")
		}
	})
}

func TestMSNArithmetic(t *testing.T) {
	require.EqualValues(t, 0, MSN(0xffffffff).Next(), "0xffffffff is followed by 0")
	require.EqualValues(t, 3, MSN(1).After(0xfffffffe), "distance across the wrap")
	require.EqualValues(t, 0, MSN(7).After(7), "no distance")
	require.Equal(t, uint32(0xffffffff), MSN(6).After(7), "one behind is far ahead")
}
