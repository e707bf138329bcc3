package capsule

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/internal/golden"
)

// write is a Write with an SGL.
func write(sgl SGL) SQE { return RW{Opcode: OpWrite, NSID: 1}.SQE(7, sgl) }

func TestNVME_15_Flags(t *testing.T) {
	keyed := KeyedSGL(9, 0x1000, 512, true)
	for flags := range 256 {
		c := write(keyed)
		c.Flags = uint8(flags)
		d, status := c.Data(nil)
		if flags == FlagSGL {
			require.Equal(t, Success, status)
			require.Equal(t, Success, c.CheckFlags())
			continue
		}
		require.Equal(t, StatusInvalidField, status, flags)
		require.Equal(t, StatusInvalidField, c.CheckFlags(), flags)
		// An SGL that is not one names no STag that a response could invalidate.
		require.Equal(t, flags&0xC0 == 0x40, d.Invalidate, flags)
	}
}

func TestNVME_17_TypesOfSGL(t *testing.T) {
	for kind := range 256 {
		c := write(KeyedSGL(0, 0, 16, false))
		c.SGL[15] = byte(kind)
		d, status := c.Data(make([]byte, 16))
		want := StatusInvalidSGLType
		switch kind {
		case 0x01, 0x40, 0x4F:
			want = Success
			require.Equal(t, kind == 0x4F, d.Invalidate)
			require.Equal(t, kind == 0x01, d.Kind == DataInCapsule)
		case 0x00:
		default:
			if kind>>4 == 0 || kind>>4 == 4 {
				want = StatusInvalidField
			}
		}
		require.Equal(t, want, status, "%#02x", kind)
		if want != Success {
			require.Equal(t, Data{}, d, "%#02x", kind)
		}
	}
}

func TestNVME_17_KeyedOfLengthZeroIsNoData(t *testing.T) {
	for _, inv := range []bool{false, true} {
		c := write(KeyedSGL(9, math.MaxUint64, 0, inv))
		d, status := c.Data(nil)
		require.Equal(t, Success, status)
		require.Equal(t, Data{}, d, "no data, and no invalidation")
	}
}

func TestNVME_18_OrderOfTheOctetsOfTheKey(t *testing.T) {
	c, _, err := ParseSQE(goldenNamed(t, "connect-admin")[0])
	require.NoError(t, err)
	d, status := c.Data(nil)
	require.Equal(t, Success, status)
	require.Equal(t, Data{
		Kind: DataKeyed, Invalidate: true, STag: 0x46333301, TO: 0xff17d4f47feb8400, Length: 1024,
	}, d)

	// The target's Read Request names the same source, big-endian.
	read := goldenNamed(t, golden.ReadRequest)[0]
	source := read[len(read)-12:]
	require.Equal(t, d.STag, binary.BigEndian.Uint32(source))
	require.Equal(t, d.TO, binary.BigEndian.Uint64(source[4:]))
	require.Equal(t, d.Length, binary.BigEndian.Uint32(read[len(read)-16:]))
	require.Equal(t, unhex("0084eb7ff4d417ff 000400 01333346 4f"), c.SGL[:])
}

func TestNVME_19_AddressesOfKernels(t *testing.T) {
	for _, c := range []struct {
		to     uint64
		n      uint32
		status Status
	}{
		{1 << 63, 1, Success},
		{math.MaxInt64, 1 << 20, Success},
		{math.MaxUint64 - 512, 512, Success},
		{math.MaxUint64 - 511, 512, StatusDataTransferError},
		{math.MaxUint64, 1, StatusDataTransferError},
		{math.MaxUint64 - 1<<24 + 2, 1<<24 - 1, StatusDataTransferError},
		{math.MaxUint64 - 1<<24 + 1, 1<<24 - 1, Success},
	} {
		sqe := write(KeyedSGL(1, c.to, c.n, true))
		d, status := sqe.Data(nil)
		require.Equal(t, c.status, status, "%#x+%d", c.to, c.n)
		require.Equal(t, Data{Kind: DataKeyed, Invalidate: true, STag: 1, TO: c.to, Length: c.n}, d,
			"a response with an error invalidates too")
	}
}

func TestNVME_20_LengthOf24Bits(t *testing.T) {
	c := write(KeyedSGL(0xFFFFFFFF, 0, 0xFFFFFF, true))
	d, status := c.Data(nil)
	require.Equal(t, Success, status)
	require.Equal(t, uint32(0xFFFFFF), d.Length)
	require.Equal(t, uint32(0xFFFFFFFF), d.STag)
	require.Panics(t, func() { KeyedSGL(0, 0, 1<<24, true) })

	// 65536 LBAs of 512 octets are more than 2^8 pages.
	b := Bounds{NSZE: 1 << 40, LBADS: 9, MaxTransfer: 1 << 20}
	m := RW{Opcode: OpWrite, NSID: 1, NLB: 0xFFFF}
	require.Equal(t, StatusInvalidField, m.Check(&b, &d))
	m.NLB = 1<<11 - 1
	require.Equal(t, StatusInvalidSGLLength, m.Check(&b, &d))
}

// TestNVME_21_ReservedOctetsAreIgnored: Linux reuses SQEs, and leaves octets of an earlier key in the descriptor.
func TestNVME_21_ReservedOctetsAreIgnored(t *testing.T) {
	for i := 12; i < 15; i++ {
		c := write(InCapsuleSGL(0, 512))
		c.SGL[i] = 0x46
		d, status := c.Data(make([]byte, 512))
		require.Equal(t, Success, status)
		require.Equal(t, DataInCapsule, d.Kind)
		require.Equal(t, uint32(512), d.Length)
	}
}

func TestNVME_21_DataInTheCapsule(t *testing.T) {
	behind := make([]byte, 4096)
	for i := range behind {
		behind[i] = byte(i)
	}
	for _, c := range []struct {
		off  uint64
		n    uint32
		want Status
	}{
		{0, 4096, Success},
		{0, 1, Success},
		{4095, 1, Success},
		{96, 4000, Success},
		{0, 4097, StatusInvalidSGLOffset},
		{1, 4096, StatusInvalidSGLOffset},
		{4096, 1, StatusInvalidSGLOffset},
		{4097, 0, StatusInvalidSGLOffset},
		{math.MaxUint64, 1, StatusInvalidSGLOffset},
		{math.MaxUint64, math.MaxUint32, StatusInvalidSGLOffset},
		{math.MaxUint64 - 4095, 4096, StatusInvalidSGLOffset},
		{1 << 32, 16, StatusInvalidSGLOffset},
		{0, math.MaxUint32, StatusInvalidSGLOffset},
	} {
		sqe := write(InCapsuleSGL(c.off, c.n))
		d, status := sqe.Data(behind)
		require.Equal(t, c.want, status, "%d+%d", c.off, c.n)
		if status.OK() {
			require.Equal(t, Data{Kind: DataInCapsule, Length: c.n, Octets: behind[c.off : c.off+uint64(c.n)]}, d)
			require.Equal(t, int(c.n), cap(d.Octets))
		}
	}
	for _, off := range []uint64{0, 4096} {
		sqe := write(InCapsuleSGL(off, 0))
		d, status := sqe.Data(behind)
		require.Equal(t, Success, status)
		require.Equal(t, Data{}, d)
	}
	sqe := write(InCapsuleSGL(0, 16))
	_, status := sqe.Data(nil)
	require.Equal(t, StatusInvalidSGLOffset, status, "a target that takes no data in capsules")
}

func TestNVME_22_DataInTheCapsuleGoesToTheController(t *testing.T) {
	sgl := InCapsuleSGL(0, 512)
	behind := make([]byte, 512)
	for _, c := range []struct {
		sqe  SQE
		want Status
	}{
		{RW{Opcode: OpWrite}.SQE(0, sgl), Success},
		{RW{Opcode: OpCompare}.SQE(0, sgl), Success},
		{DSM{}.SQE(0, sgl), Success},
		{Connect{}.SQE(0, sgl), Success},
		{SetFeatures{}.SQE(0, sgl), Success},
		{RW{Opcode: OpRead}.SQE(0, sgl), StatusInvalidField},
		{RW{Opcode: OpWriteZeroes}.SQE(0, sgl), StatusInvalidField},
		{Identify{}.SQE(0, sgl), StatusInvalidField},
		{GetLogPage{}.SQE(0, sgl), StatusInvalidField},
		{GetFeatures{}.SQE(0, sgl), StatusInvalidField},
		{SQE{Opcode: OpFabrics, NSID: uint32(FCPropertyGet), Flags: FlagSGL, SGL: sgl}, StatusInvalidField},
		{SQE{Opcode: 0x83, Flags: FlagSGL, SGL: sgl}, StatusInvalidField},
	} {
		_, status := c.sqe.Data(behind)
		require.Equal(t, c.want, status, "opcode %#x", c.sqe.Opcode)
	}
}

func TestNVME_61_LengthOfTheData(t *testing.T) {
	d := Data{Length: 16}
	require.Equal(t, Success, d.Exactly(16))
	require.Equal(t, StatusInvalidSGLLength, d.Exactly(15))
	require.Equal(t, StatusInvalidSGLLength, d.Exactly(1<<32+16))
	require.Equal(t, Success, d.AtLeast(16))
	require.Equal(t, Success, d.AtLeast(0))
	require.Equal(t, StatusInvalidSGLLength, d.AtLeast(17))
}
