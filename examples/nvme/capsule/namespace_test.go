package capsule

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNVME_44_OffsetsOfIdentifyNamespace(t *testing.T) {
	for _, lbads := range []uint8{9, 12} {
		n := IdentifyNamespace{
			NSZE: 0x11, NCAP: 0x12, NUSE: 0x13, NSFEAT: NSFEATThin | NSFEATOptimal, NMIC: NMICShared,
			DLFEAT: DLFEATZeroes | DLFEATWriteZeroes, NPWG: 1, NPWA: 2, NPDG: 3, NPDA: 4, NOWS: 5, ANAGRPID: 0x14,
			NSATTR: NSATTRWriteProtected, NGUID: [16]byte{0x21, 15: 0x22}, EUI64: [8]byte{0x23, 7: 0x24},
		}
		n.LBAF[0].LBADS = lbads
		n.LBAF[63] = LBAFormat{MS: 0x0506, LBADS: 7, RP: 3}
		page := dirty()
		n.Put(page)
		want := map[int]byte{
			0: 0x11, 8: 0x12, 16: 0x13, 24: 0x11, 30: 1, 33: 9, 64: 1, 66: 2, 68: 3, 70: 4, 72: 5, 92: 0x14, 99: 1,
			104: 0x21, 119: 0x22, 120: 0x23, 127: 0x24, 130: lbads, 380: 6, 381: 5, 382: 7, 383: 3,
		}
		for off, v := range page {
			require.Equal(t, want[off], v, off)
		}
		got, err := ParseIdentifyNamespace(page)
		require.NoError(t, err)
		require.Equal(t, &n, got)
	}
	page := dirty()
	(&IdentifyNamespace{NLBAF: 3, FLBAS: 2}).Put(page)
	require.Equal(t, []byte{3, 2}, page[25:27])
}

func TestNVME_44_GoldenIdentifyNamespace(t *testing.T) {
	want := []Geometry{{12, 0x4000}, {12, 0x4000}, {9, 0x200000}}
	for i, b := range goldenNamed(t, "data:identify-ns") {
		n, err := ParseIdentifyNamespace(b)
		require.NoError(t, err)
		page := dirty()
		n.Put(page)
		require.Equal(t, b, page)
		g, err := n.Geometry()
		require.NoError(t, err)
		require.Equal(t, want[i].LBADS, g.LBADS)
		require.Equal(t, 1<<g.LBADS, g.BlockSize())
		require.Equal(t, n.NSZE, g.Blocks)
		require.Equal(t, int64(n.NSZE)<<g.LBADS, g.Size())
		require.NotZero(t, n.NMIC&NMICShared)
	}
	n, err := ParseIdentifyNamespace(make([]byte, PageSize))
	require.NoError(t, err)
	_, err = n.Geometry()
	require.ErrorIs(t, err, ErrInactive)
	_, err = ParseIdentifyNamespace(make([]byte, PageSize-1))
	require.ErrorIs(t, err, ErrMalformed)
}

func TestHOST_16_SizesThatAHostRefuses(t *testing.T) {
	for _, c := range []struct {
		nsze         uint64
		lbads, flbas uint8
		ms           uint16
		good         bool
	}{
		{1, 9, 0, 0, true},
		{1, 16, 0, 0, true},
		{math.MaxInt64 >> 12, 12, 0, 0, true},
		{math.MaxInt64>>12 + 1, 12, 0, 0, false},
		{math.MaxInt64 >> 9, 9, 0, 0, true},
		{math.MaxUint64, 9, 0, 0, false},
		{math.MaxUint64, 12, 0, 0, false},
		{1 << 55, 9, 0, 0, false}, // 2^64 octets
		{1, 0, 0, 0, false},
		{1, 8, 0, 0, false},
		{1, 17, 0, 0, false},
		{1, 63, 0, 0, false},
		{1, 255, 0, 0, false},
		{0, 12, 0, 0, false},
		{1, 12, 0, 8, false},
		{1, 12, 2, 0, false}, // no such format
		{1, 12, 0x20, 0, false},
	} {
		n := IdentifyNamespace{NSZE: c.nsze, NCAP: 1, FLBAS: c.flbas, NLBAF: 1}
		for i := range n.LBAF {
			n.LBAF[i] = LBAFormat{MS: c.ms, LBADS: c.lbads}
		}
		g, err := n.Geometry()
		require.Equal(t, c.good, err == nil, "%+v: %v", c, err)
		if c.good {
			require.Positive(t, g.Size())
			require.Equal(t, uint64(g.Size()), g.Blocks<<c.lbads)
		} else {
			require.ErrorIs(t, err, ErrMalformed)
		}
	}
	// The format in use is the one that FLBAS names, of up to 64.
	n := IdentifyNamespace{NSZE: 1, NLBAF: 63, FLBAS: 0x41}
	n.LBAF[0x21].LBADS = 12
	g, err := n.Geometry()
	require.NoError(t, err)
	require.Equal(t, Geometry{12, 1}, g)
}

func TestNVME_45_NamespaceLists(t *testing.T) {
	ids := []uint32{1, 3, 4, 1000, 0xFFFFFFFD}
	page := dirty()
	PutNamespaceList(page, ids, 3)
	want := make([]byte, PageSize)
	for i, id := range ids[2:] {
		binary.LittleEndian.PutUint32(want[4*i:], id)
	}
	require.Equal(t, want, page)
	got, err := ParseNamespaceList(nil, page, 3)
	require.NoError(t, err)
	require.Equal(t, ids[2:], got)

	var many []uint32
	for i := range uint32(2000) {
		many = append(many, 2*i+1)
	}
	PutNamespaceList(page, many, 0)
	got, err = ParseNamespaceList([]uint32{7}, page, 0)
	require.NoError(t, err)
	require.Equal(t, append([]uint32{7}, many[:1024]...), got)
	PutNamespaceList(page, many, got[1024])
	got, err = ParseNamespaceList(got, page, got[1024])
	require.NoError(t, err)
	require.Equal(t, many, got[1:])

	for _, b := range goldenNamed(t, "data:identify-nslist") {
		got, err := ParseNamespaceList(nil, b, 0)
		require.NoError(t, err)
		require.Equal(t, []uint32{1}, got)
		PutNamespaceList(page, got, 0)
		require.Equal(t, b, page)
	}
}

func TestHOST_16_ListsThatAHostRefuses(t *testing.T) {
	for _, c := range []struct {
		after uint32
		ids   []uint32
	}{
		{0, []uint32{1, 3, 2}},
		{0, []uint32{1, 1}},
		{1, []uint32{1}},
		{5, []uint32{3, 6}},
		{0, []uint32{0xFFFFFFFF}},
		{0, []uint32{1, 0xFFFFFFFE}},
	} {
		page := make([]byte, PageSize)
		for i, id := range c.ids {
			binary.LittleEndian.PutUint32(page[4*i:], id)
		}
		_, err := ParseNamespaceList(nil, page, c.after)
		require.ErrorIs(t, err, ErrMalformed, "%v", c.ids)
	}
	_, err := ParseNamespaceList(nil, make([]byte, PageSize-1), 0)
	require.ErrorIs(t, err, ErrMalformed)
}

func TestNVME_46_Descriptors(t *testing.T) {
	for _, b := range goldenNamed(t, "data:identify-nsdesc") {
		d, err := ParseDescriptors(b)
		require.NoError(t, err)
		require.NotZero(t, d.UUID)
		page := dirty()
		d.Put(page)
		require.Equal(t, b, page)
	}
	uuid, nguid := [16]byte{1, 15: 2}, [16]byte{3, 15: 4}
	all := Descriptors{UUID: uuid, NGUID: nguid, EUI64: [8]byte{5, 7: 6}, CSI: 0}
	page := dirty()
	all.Put(page)
	want := unhex("03100000 01000000000000000000000000000002 02100000 03000000000000000000000000000004" +
		"01080000 0500000000000006 04010000 00 00000000")
	require.Equal(t, want, page[:len(want)])
	require.Equal(t, make([]byte, PageSize-len(want)), page[len(want):])
	got, err := ParseDescriptors(page)
	require.NoError(t, err)
	require.Equal(t, &all, got)
}

func TestHOST_16_Descriptors(t *testing.T) {
	parse := func(s string) (*Descriptors, error) {
		page := make([]byte, PageSize)
		copy(page, unhex(s))
		return ParseDescriptors(page)
	}
	d, err := parse("09050000 0102030405 04010000 02")
	require.NoError(t, err, "an unknown type is skipped")
	require.Equal(t, &Descriptors{CSI: 2}, d)
	for _, s := range []string{
		"030f0000 010203", "02110000", "01100000", "04020000", // lengths
		"04010000 00 04010000 01", // twice
	} {
		_, err := parse(s)
		require.ErrorIs(t, err, ErrMalformed, s)
	}
	// Descriptors up to the end of the page, and one beyond it.
	page := make([]byte, PageSize)
	for at := 0; at < PageSize; at += 32 {
		page[at], page[at+1] = 9, 28
	}
	_, err = ParseDescriptors(page)
	require.NoError(t, err)
	page[PageSize-31] = 29
	_, err = ParseDescriptors(page)
	require.ErrorIs(t, err, ErrMalformed)
	_, err = ParseDescriptors(page[1:])
	require.ErrorIs(t, err, ErrMalformed)
}

func TestNVME_47_LimitsOfTheCommandSet(t *testing.T) {
	n := IdentifyNVM{VSL: 1, WZSL: 2, WUSL: 3, DMRL: 4, DMRSL: 0x05060708, DMSL: 0x1112131415161718}
	page := dirty()
	n.Put(page)
	want := make([]byte, PageSize)
	copy(want, unhex("01 02 03 04 08070605 1817161514131211"))
	require.Equal(t, want, page)
	got, err := ParseIdentifyNVM(page)
	require.NoError(t, err)
	require.Equal(t, n, got)
	_, err = ParseIdentifyNVM(page[1:])
	require.ErrorIs(t, err, ErrMalformed)

	for _, b := range goldenNamed(t, "data:identify-ctrl-csi") {
		got, err := ParseIdentifyNVM(b)
		require.NoError(t, err)
		require.Zero(t, got)
	}
	c := goldenCommand(t, "identify-ctrl-csi")
	require.Equal(t, Identify{CNS: CNSCommandSet}, ParseIdentify(&c))
	m := Identify{NSID: 1, CNS: 5, CNTID: 0x0203, CSI: 4}
	c = m.SQE(1, NullSGL())
	require.Equal(t, unhex("05000302 00000004"), c.Append(nil)[40:48])
	require.Equal(t, m, ParseIdentify(&c))
}
