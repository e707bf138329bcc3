package capsule

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNVME_38_ValuesOfProperties(t *testing.T) {
	value := func(v uint64) []byte {
		r := CQE{}
		r.SetValue(v)
		require.Equal(t, v, r.Value())
		return r.Append(nil)[:8]
	}
	// Ours, then the kernel's.
	ours := CAP{MQES: 127, CQR: true, TO: 15, CSS: CSSNVM}
	require.Equal(t, unhex("7f 00 01 0f 20 00 00 00"), value(ours.Value()))
	kernels := CAP{MQES: 127, TO: 15, CSS: CSSNVM | CSSCSI}
	require.Equal(t, unhex("7f 00 00 0f 20 08 00 00"), value(kernels.Value()))
	all := CAP{MQES: 0x1234, CQR: true, TO: 0x56, CSS: 0x81, MPSMIN: 3, MPSMAX: 9}
	for _, c := range []CAP{ours, kernels, all} {
		require.Equal(t, c, ParseCAP(c.Value()))
	}
	require.Equal(t, uint64(3)<<48|9<<52, all.Value()>>48<<48)

	require.Equal(t, Version(0x00010300), Version13)
	require.Equal(t, "1.3.0", Version13.String())
	require.Equal(t, "2.0.1", Version(0x00020001).String())

	off := CC{IOSQES: 6, IOCQES: 4}
	require.Equal(t, uint32(0x460000), off.Value())
	on := CC{EN: true, IOSQES: 6, IOCQES: 4}
	require.Equal(t, uint32(0x460001), on.Value())
	require.Equal(t, uint32(0x464001), CC{EN: true, SHN: SHNNormal, IOSQES: 6, IOCQES: 4}.Value())
	require.Equal(t, CC{EN: true, CSS: 6, SHN: SHNNormal, IOSQES: 6, IOCQES: 4}, ParseCC(0x464061))
	c := CC{EN: true, CSS: 5, MPS: 10, AMS: 3, SHN: 2, IOSQES: 9, IOCQES: 12}
	require.Equal(t, uint32(1|5<<4|10<<7|3<<11|2<<14|9<<16|12<<20), c.Value())
	require.Equal(t, c, ParseCC(c.Value()))

	require.Equal(t, uint32(1), CSTS{RDY: true}.Value())
	require.Equal(t, uint32(2), CSTS{CFS: true}.Value())
	require.Equal(t, uint32(8), CSTS{SHST: SHSTComplete}.Value())
	for v := range uint32(16) {
		require.Equal(t, v, ParseCSTS(v).Value())
	}
}

func TestNVME_39_FieldsThatCanBeEnabled(t *testing.T) {
	require.True(t, ParseCC(0x460001).Supported())
	require.True(t, ParseCC(0x460000).Supported())
	for _, v := range []uint32{0x460060, 0x450001, 0x470001, 0x560001, 0x460011, 0x460081, 0x460801, 1} {
		require.False(t, ParseCC(v).Supported(), "%#x", v)
	}
}

func TestNVME_38_SizesAndOffsetsOfProperties(t *testing.T) {
	c := goldenCommand(t, "property-get-intms")
	require.Equal(t, Property{Offset: 0x0C}, ParseProperty(&c))
	require.Equal(t, StatusInvalidField, ParseProperty(&c).Check())
	c = goldenCommand(t, "property-get-cap")
	require.Equal(t, GetProperty(PropCAP), ParseProperty(&c))
	c = goldenCommand(t, "property-set-cc-460061")
	require.Equal(t, SetProperty(PropCC, 0x460061), ParseProperty(&c))

	good := map[Property]bool{
		{Attrib: 1, Offset: 0x00}: true, {Offset: 0x08}: true, {Offset: 0x14}: true, {Offset: 0x1C}: true,
		{Set: true, Offset: 0x14}: true,
	}
	for off := range uint32(0x100) {
		for attrib := range uint8(8) {
			for _, set := range []bool{false, true} {
				m := Property{Set: set, Attrib: attrib, Offset: off}
				require.Equal(t, good[m], m.Check().OK(), "%+v", m)
			}
		}
	}
	require.Equal(t, StatusInvalidField, Property{Offset: 1<<31 | 8}.Check())

	set := Property{Set: true, Attrib: 1, Offset: 0x01020304, Value: 0x1112131415161718}
	c = set.SQE(3)
	require.Equal(t, unhex("01000000 04030201 1817161514131211 0000000000000000"), c.Append(nil)[40:])
	require.Equal(t, set, ParseProperty(&c))
	require.Equal(t, NullSGL(), c.SGL)
	get := Property{Attrib: 1, Offset: 4, Value: 5}.SQE(3)
	require.Zero(t, get.CDW12, "Property Get has no value")
}
