package capsule

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHOST_24_GoldenIO(t *testing.T) {
	c := goldenCommand(t, "flush")
	require.Equal(t, c, FlushSQE(c.CID, 1))
	c = goldenCommand(t, "write-zeroes-slba8-n8")
	require.Equal(t, c, RW{Opcode: OpWriteZeroes, NSID: 1, SLBA: 8, NLB: 7}.SQE(c.CID, NullSGL()))
	c = goldenCommand(t, "compare-slba0-n1-incapsule")
	require.Equal(t, c, RW{Opcode: OpCompare, NSID: 1}.SQE(c.CID, InCapsuleSGL(0, 4096)))
	c = goldenCommand(t, "write-slba10-n8-incapsule")
	require.Equal(t, c, RW{Opcode: OpWrite, NSID: 1, SLBA: 0x10, NLB: 7}.SQE(c.CID, InCapsuleSGL(0, 4096)))
	c = goldenCommand(t, "read-slbaf423f-n1")
	require.Equal(t, RW{Opcode: OpRead, NSID: 1, SLBA: 999999}, ParseRW(&c))

	b := goldenNamed(t, "dsm-incapsule")[0]
	c, behind, err := ParseSQE(b)
	require.NoError(t, err)
	m := ParseDSM(&c)
	require.Equal(t, DSM{NSID: 1, AD: true}, m)
	require.Equal(t, 1, m.Ranges())
	require.Equal(t, c, m.SQE(c.CID, InCapsuleSGL(0, DSMRangeSize)))
	r := ParseDSMRange(behind, 0)
	require.Equal(t, DSMRange{NLB: 8, SLBA: 16}, r)
	require.Equal(t, behind, r.Append(nil))
}

func TestHOST_24_FieldsOfIO(t *testing.T) {
	base := RW{Opcode: OpWrite, NSID: 0x01020304, SLBA: 0x1112131415161718, NLB: 0x2122, Hints: 0x31323334}
	for _, f := range []struct {
		change func(*RW)
		bits   uint32
	}{
		{func(m *RW) {}, 0},
		{func(m *RW) { m.FUA = true }, 1 << 30},
		{func(m *RW) { m.LR = true }, 1 << 31},
		{func(m *RW) { m.DEAC = true }, 1 << 25},
		{func(m *RW) { m.PRINFO = 15 }, 15 << 26},
		{func(m *RW) { m.PRINFO = 1 }, 1 << 26},
	} {
		m := base
		f.change(&m)
		c := m.SQE(5, NullSGL())
		require.Equal(t, f.bits|0x2122, c.CDW12)
		require.Equal(t, unhex("1817161514131211 2221"), c.Append(nil)[40:50])
		require.Equal(t, unhex("34333231 00000000 00000000"), c.Append(nil)[52:])
		require.Equal(t, m, ParseRW(&c))
	}
	d := DSM{NSID: 1, NR: 255, IDR: true, IDW: true, AD: true}
	c := d.SQE(5, NullSGL())
	require.Equal(t, unhex("ff000000 07000000"), c.Append(nil)[40:48])
	require.Equal(t, d, ParseDSM(&c))
	require.Equal(t, MaxDSMRanges, d.Ranges())
	for i, m := range []DSM{{IDR: true}, {IDW: true}, {AD: true}} {
		c := m.SQE(5, NullSGL())
		require.Equal(t, uint32(1)<<i, c.CDW11)
		require.Equal(t, m, ParseDSM(&c))
	}
	r := DSMRange{Attributes: 0x01020304, NLB: 0x05060708, SLBA: 0x1112131415161718}
	require.Equal(t, unhex("04030201 08070605 1817161514131211"), r.Append(nil))
	require.Equal(t, r, ParseDSMRange(append(make([]byte, 32), r.Append(nil)...), 2))
}

func TestNVME_60_RangesOfLBAs(t *testing.T) {
	b := Bounds{NSZE: 1000, LBADS: 12}
	for _, c := range []struct {
		slba uint64
		nlb  uint16
		want Status
	}{
		{0, 0, Success},
		{999, 0, Success},
		{0, 999, Success},
		{990, 9, Success},
		{1000, 0, StatusLBAOutOfRange},
		{0, 1000, StatusLBAOutOfRange},
		{991, 9, StatusLBAOutOfRange},
		{math.MaxUint64, 0, StatusLBAOutOfRange},
		{math.MaxUint64, 0xFFFF, StatusLBAOutOfRange},
		{math.MaxUint64 - 0xFFFF, 0xFFFF, StatusLBAOutOfRange},
		{1 << 63, 0xFFFF, StatusLBAOutOfRange},
	} {
		m := RW{Opcode: OpRead, SLBA: c.slba, NLB: c.nlb}
		require.Equal(t, c.want, m.Check(&b, &Data{Length: uint32(m.Blocks() << 12)}), "%+v", c)
	}
	require.True(t, b.Contains(1000, 0))
	require.False(t, b.Contains(1001, 0))
	require.False(t, b.Contains(0, math.MaxUint64))
}

// TestNVME_61_74_75_OrderOfTheChecks: each check comes before those that follow it here.
func TestNVME_61_74_75_OrderOfTheChecks(t *testing.T) {
	b := Bounds{NSZE: 1000, LBADS: 12, MaxTransfer: 8192, ReadOnly: true}
	m := RW{Opcode: OpWrite, SLBA: 1000, NLB: 2, PRINFO: 1}
	d := &Data{Length: 4096}
	require.Equal(t, StatusWriteProtected, m.Check(&b, d))
	zeroes := m
	zeroes.Opcode = OpWriteZeroes
	require.Equal(t, StatusWriteProtected, zeroes.Check(&b, d))
	read := m
	read.Opcode = OpRead
	require.Equal(t, StatusInvalidProtectionInfo, read.Check(&b, d))
	read.Opcode = OpCompare
	require.Equal(t, StatusInvalidProtectionInfo, read.Check(&b, d))

	b.ReadOnly = false
	require.Equal(t, StatusInvalidProtectionInfo, m.Check(&b, d))
	m.PRINFO = 0
	require.Equal(t, StatusLBAOutOfRange, m.Check(&b, d))
	m.SLBA = 997
	require.Equal(t, StatusInvalidField, m.Check(&b, d))
	m.NLB = 1
	require.Equal(t, StatusInvalidSGLLength, m.Check(&b, d))
	require.Equal(t, StatusInvalidSGLLength, m.Check(&b, &Data{}), "no data")
	require.Equal(t, StatusInvalidSGLLength, m.Check(&b, &Data{Length: 8193}), "too much of it")
	d.Length = 8192
	require.Equal(t, Success, m.Check(&b, d))
	m.LR, m.Hints, m.FUA = true, 7, true
	require.Equal(t, Success, m.Check(&b, d))

	// Write Zeroes has no data and no largest transfer.
	m = RW{Opcode: OpWriteZeroes, NLB: 999}
	require.Equal(t, Success, m.Check(&b, &Data{}))
	b.MaxTransfer = 0
	m.Opcode = OpRead
	require.Equal(t, Success, m.Check(&b, &Data{Length: 1000 << 12}))
}

func TestNVME_71_Ranges(t *testing.T) {
	b := Bounds{NSZE: 1000, LBADS: 12}
	m := DSM{AD: true, NR: 1}
	require.Equal(t, StatusInvalidSGLLength, m.Check(&b, &Data{Length: 31}))
	require.Equal(t, Success, m.Check(&b, &Data{Length: 32}))
	require.Equal(t, Success, m.Check(&b, &Data{Length: 4096}))
	m.NR = 255
	require.Equal(t, Success, m.Check(&b, &Data{Length: 4096}))
	require.Equal(t, StatusInvalidSGLLength, m.Check(&b, &Data{Length: 4095}))
	b.ReadOnly = true
	require.Equal(t, StatusWriteProtected, m.Check(&b, &Data{Length: 4096}))
	m.AD = false
	require.Equal(t, Success, m.Check(&b, &Data{Length: 4096}))

	ranges := func(all ...DSMRange) []byte {
		var data []byte
		for _, r := range all {
			data = r.Append(data)
		}
		return data
	}
	good := ranges(DSMRange{SLBA: 0, NLB: 1000}, DSMRange{SLBA: 1000}, DSMRange{SLBA: 999, NLB: 1})
	require.Equal(t, Success, CheckDSMRanges(&b, good, 3, 0))
	require.Equal(t, Success, CheckDSMRanges(&b, good, 3, 1000))
	require.Equal(t, StatusInvalidField, CheckDSMRanges(&b, good, 3, 999))
	for _, bad := range []DSMRange{
		{SLBA: 1001}, {SLBA: 999, NLB: 2}, {SLBA: math.MaxUint64, NLB: math.MaxUint32}, {NLB: 1001}, {NLB: 1 << 16},
	} {
		data := ranges(DSMRange{NLB: 1}, bad)
		require.Equal(t, StatusLBAOutOfRange, CheckDSMRanges(&b, data, 2, 0), "%+v", bad)
		require.Equal(t, Success, CheckDSMRanges(&b, data, 1, 0), "what is behind the ranges is not looked at")
	}
}
