package capsule

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNVME_48_LengthsAndOffsetsOfLogs(t *testing.T) {
	c := goldenCommand(t, "get-log-70-1024")
	require.Equal(t, GetLogPage{LID: LogDiscovery, RAE: true, NUMD: 255}, ParseGetLogPage(&c))
	c = goldenCommand(t, "get-log-0c-8208")
	m := ParseGetLogPage(&c)
	require.Equal(t, uint64(8208), m.Length())
	m = NewGetLogPage(LogChangedNamespaces, 0, 4096, false)
	c = goldenCommand(t, "get-log-04-4096")
	c.CDW10 &^= 1 << 15
	require.Equal(t, m, ParseGetLogPage(&c))

	m = GetLogPage{NSID: 1, LID: 0x02, LSP: 0x7F, RAE: true, NUMD: 0x01020304, Offset: 0x1112131415161718}
	c = m.SQE(1, NullSGL())
	require.Equal(t, unhex("02 ff 0403 0201 0000 1817161514131211"), c.Append(nil)[40:56])
	require.Equal(t, m, ParseGetLogPage(&c))
	require.False(t, ParseGetLogPage(&SQE{CDW10: 0x7F00}).RAE)

	const most = 1 << 20
	for _, c := range []struct {
		numd uint32
		off  uint64
		have uint32
		want Status
	}{
		{0, 0, 4, Success},
		{1023, 4, 4096, Success},
		{most/4 - 1, 0, most, Success},
		{most / 4, 0, most + 4, StatusInvalidField},
		{math.MaxUint32, 0, 0, StatusInvalidField}, // 2^32 dwords
		{1<<30 - 1, 0, 0, StatusInvalidField},      // 2^32 octets
		{1023, 2, 4096, StatusInvalidField},
		{1023, 0, 4095, StatusInvalidSGLLength},
		{1023, 0, 4100, StatusInvalidSGLLength},
		{1023, 0, 0, StatusInvalidSGLLength},
	} {
		m := GetLogPage{NUMD: c.numd, Offset: c.off}
		require.Equal(t, c.want, m.Check(&Data{Length: c.have}, most), "%+v", c)
	}
	require.Equal(t, uint64(1)<<34, GetLogPage{NUMD: math.MaxUint32}.Length())
}

func TestNVME_48_PartsOfLogs(t *testing.T) {
	log := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	for _, c := range []struct {
		off    uint64
		n      int
		want   []byte
		status Status
	}{
		{0, 4, []byte{1, 2, 3, 4}, Success},
		{4, 8, []byte{5, 6, 7, 8, 0, 0, 0, 0}, Success},
		{8, 4, []byte{0, 0, 0, 0}, Success},
		{9, 4, nil, StatusInvalidField},
		{12, 4, nil, StatusInvalidField},
		{math.MaxUint64 - 3, 4, nil, StatusInvalidField},
	} {
		dst := dirty()[:c.n]
		require.Equal(t, c.status, PutLog(dst, log, c.off))
		if c.status.OK() {
			require.Equal(t, c.want, dst)
		}
	}
}

func TestNVME_49_SMART(t *testing.T) {
	const unit = 512000
	for octets, want := range map[uint64]uint64{
		0: 0, 1: 1, unit: 1, unit + 1: 2, 10 * unit: 10, math.MaxUint64: math.MaxUint64/unit + 1,
	} {
		require.Equal(t, want, DataUnits(octets), octets)
	}
	l := SMART{
		CriticalWarning: 1, Temperature: 300, Spare: 100, SpareThreshold: 10, PercentageUsed: 2, UnitsRead: 3, UnitsWritten: 4,
		Reads: 5, Writes: 6, BusyMinutes: 7, PowerCycles: 8, PowerOnHours: 9, UnsafeShutdowns: 10, MediaErrors: 11,
	}
	page := dirty()
	l.Put(page)
	want := make([]byte, SMARTSize)
	copy(want, unhex("01 2c01 64 0a 02"))
	for i := range byte(9) {
		want[32+16*int(i)] = 3 + i
	}
	require.Equal(t, want, page[:SMARTSize])
	got, err := ParseSMART(page)
	require.NoError(t, err)
	require.Equal(t, l, got)
	page[40] = 1 // 2^64 and more
	got, err = ParseSMART(page)
	require.NoError(t, err)
	require.Equal(t, uint64(math.MaxUint64), got.UnitsRead)
	_, err = ParseSMART(page[:511])
	require.ErrorIs(t, err, ErrMalformed)

	for _, b := range goldenNamed(t, "data:get-log-02-512") {
		got, err := ParseSMART(b)
		require.NoError(t, err)
		page := dirty()
		got.Put(page)
		require.Equal(t, b, page[:SMARTSize])
	}
}

func TestNVME_48_ErrorLog(t *testing.T) {
	e := ErrorEntry{
		Count: 0x01, SQID: 0x02, CID: 0x0304, Status: StatusReadError | statusMore, Location: 0x05, LBA: 0x06, NSID: 0x07,
	}
	page := dirty()
	e.Put(page)
	want := make([]byte, ErrorEntrySize)
	copy(want, unhex("0100000000000000 0200 0403 0245 0500 0600000000000000 07000000"))
	require.Equal(t, want, page[:ErrorEntrySize])
	got, err := ParseErrorEntry(page)
	require.NoError(t, err)
	require.Equal(t, e, got)
	_, err = ParseErrorEntry(page[:63])
	require.ErrorIs(t, err, ErrMalformed)
	require.Equal(t, make([]byte, 4096), goldenNamed(t, "data:get-log-01-4096")[0])
}

func TestNVME_48_FirmwareLog(t *testing.T) {
	f := Firmware{AFI: 1, FRS: [7]string{"1.0", 6: "12345678"}}
	page := dirty()
	f.Put(page)
	want := make([]byte, FirmwareSize)
	want[0] = 1
	copy(want[8:], "1.0     ")
	copy(want[56:], "12345678")
	require.Equal(t, want, page[:FirmwareSize])
	got, err := ParseFirmware(page)
	require.NoError(t, err)
	require.Equal(t, f, got)
	_, err = ParseFirmware(page[:511])
	require.ErrorIs(t, err, ErrMalformed)
}

func TestNVME_53_ChangedNamespaces(t *testing.T) {
	ids := make([]uint32, 1025)
	for i := range ids {
		ids[i] = uint32(i + 1)
	}
	page := dirty()
	PutChangedNamespaces(page, ids[:1024])
	got, all, err := ParseChangedNamespaces(nil, page)
	require.NoError(t, err)
	require.False(t, all)
	require.Equal(t, ids[:1024], got)

	page = dirty()
	PutChangedNamespaces(page, ids)
	want := make([]byte, PageSize)
	copy(want, unhex("ffffffff"))
	require.Equal(t, want, page)
	got, all, err = ParseChangedNamespaces(nil, page)
	require.NoError(t, err)
	require.True(t, all)
	require.Empty(t, got)

	PutChangedNamespaces(page, []uint32{2})
	require.Equal(t, append(unhex("02000000"), make([]byte, PageSize-4)...), page)
	_, _, err = ParseChangedNamespaces(nil, page[:4])
	require.ErrorIs(t, err, ErrMalformed)
}

func TestNVME_48_EffectsLog(t *testing.T) {
	var e Effects
	e.Admin[OpIdentify], e.Admin[255] = EffectSupported, 0x01020304
	e.IO[OpWrite] = EffectSupported | EffectLBCC
	page := dirty()
	e.Put(page)
	want := make([]byte, PageSize)
	want[24], want[1028] = 1, 3
	copy(want[1020:], unhex("04030201"))
	require.Equal(t, want, page)
	var got Effects
	require.NoError(t, got.Parse(page))
	require.Equal(t, e, got)
	require.ErrorIs(t, got.Parse(page[1:]), ErrMalformed)

	for i, b := range goldenNamed(t, "data:get-log-05-4096") {
		require.NoError(t, got.Parse(b))
		page := dirty()
		got.Put(page)
		require.Equal(t, b, page)
		require.Equal(t, uint32(EffectSupported), got.Admin[OpKeepAlive])
		want := []uint32{EffectSupported | EffectLBCC, EffectSupported}[i] // Linux 6.12, 6.1
		for _, op := range []Opcode{OpWrite, OpWriteZeroes} {
			require.Equal(t, want, got.IO[op])
		}
		require.Equal(t, uint32(EffectSupported), got.IO[OpDSM])
		require.Zero(t, got.IO[OpCompare])
	}
}
