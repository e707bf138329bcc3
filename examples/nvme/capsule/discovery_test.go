package capsule

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNVME_87_GoldenDiscoveryLog(t *testing.T) {
	for _, b := range goldenNamed(t, "data:get-log-70-3072") {
		h, entries, err := ParseDiscoveryLog(b)
		require.NoError(t, err)
		require.Equal(t, DiscoveryHeader{GENCTR: 2, NUMREC: 2}, h)
		require.Equal(t, uint64(len(b)), h.Length())
		require.Equal(t, SubtypeDiscovery, int(entries[0].SUBTYPE))
		require.Equal(t, DiscoveryNQN, entries[0].SubNQN)
		require.Equal(t, DiscoveryEntry{
			TRTYPE: TransportRDMA, ADRFAM: AddressIPv4, SUBTYPE: SubtypeNVM, TREQ: entries[1].TREQ, PORTID: 1,
			CNTLID: DynamicControllers, ASQSZ: 32, TRSVCID: "4420", SubNQN: entries[1].SubNQN, TRADDR: entries[1].TRADDR,
			QPTYPE: QPTypeConnected, PRTYPE: 1, CMS: CMSRDMACM,
		}, entries[1])
		require.True(t, strings.HasPrefix(entries[1].TRADDR, "10.1."))

		again := append(dirty(), dirty()...)[:len(b)]
		h.Put(again)
		for i, e := range entries {
			e.Put(again[1024*(i+1):])
		}
		require.Equal(t, b, again)
	}
}

func TestNVME_87_FieldsOfEntries(t *testing.T) {
	e := DiscoveryEntry{
		TRTYPE: 1, ADRFAM: 2, SUBTYPE: 3, TREQ: 4, PORTID: 0x0506, CNTLID: 0x0708, ASQSZ: 0x090A, EFLAGS: 0x0B0C,
		TRSVCID: "4420", SubNQN: "nqn", TRADDR: "fe80::1", QPTYPE: 0x0D, PRTYPE: ProviderIWARP, CMS: 0x0E,
	}
	b := dirty()
	e.Put(b)
	want := make([]byte, DiscoveryEntrySize)
	copy(want, unhex("01020304 0605 0807 0a09 0c0b"))
	copy(want[32:], "4420")
	copy(want[256:], "nqn")
	copy(want[512:], "fe80::1")
	copy(want[768:], []byte{0x0D, 5, 0x0E})
	require.Equal(t, want, b[:DiscoveryEntrySize])
	got, err := ParseDiscoveryEntry(b)
	require.NoError(t, err)
	require.Equal(t, e, got)

	copy(b[32:], "4420    ") // some targets pad with spaces
	got, err = ParseDiscoveryEntry(b)
	require.NoError(t, err)
	require.Equal(t, "4420", got.TRSVCID)

	for i := range 256 {
		b[256+i] = 'n'
	}
	_, err = ParseDiscoveryEntry(b)
	require.ErrorIs(t, err, ErrMalformed)
	_, err = ParseDiscoveryEntry(b[:1023])
	require.ErrorIs(t, err, ErrMalformed)
}

func TestHOST_22_DiscoveryLogsThatAHostRefuses(t *testing.T) {
	good := goldenNamed(t, "data:get-log-70-3072")[0]
	change := func(f func(b []byte)) error {
		b := append([]byte(nil), good...)
		f(b)
		_, _, err := ParseDiscoveryLog(b)
		return err
	}
	require.NoError(t, change(func(b []byte) {}))
	for _, n := range []uint64{3, MaxDiscoveryEntries, MaxDiscoveryEntries + 1, 1 << 54, math.MaxUint64} {
		require.ErrorIs(t, change(func(b []byte) { binary.LittleEndian.PutUint64(b[8:], n) }), ErrMalformed, n)
	}
	require.ErrorContains(t, change(func(b []byte) { b[8] = 3 }), "a discovery log of 3 entries in 3072 octets")
	require.NoError(t, change(func(b []byte) { b[8] = 1 }))
	require.ErrorContains(t, change(func(b []byte) { b[17] = 1 }), "RECFMT 256")
	require.ErrorContains(t, change(func(b []byte) { clear(b[2048+256 : 2048+512]) }), "empty NQN")
	_, _, err := ParseDiscoveryLog(good[:1023])
	require.ErrorIs(t, err, ErrMalformed)
	_, _, err = ParseDiscoveryLog(good[:3071])
	require.ErrorIs(t, err, ErrMalformed)

	// The header alone says how long the log is: at most 4 MiB.
	h, err := ParseDiscoveryHeader(good[:1024])
	require.NoError(t, err)
	require.Equal(t, uint64(3072), h.Length())
	most := dirty()
	DiscoveryHeader{NUMREC: MaxDiscoveryEntries}.Put(most)
	h, err = ParseDiscoveryHeader(most)
	require.NoError(t, err)
	require.Equal(t, uint64(4<<20+1024), h.Length())
	DiscoveryHeader{NUMREC: MaxDiscoveryEntries + 1}.Put(most)
	_, err = ParseDiscoveryHeader(most)
	require.ErrorIs(t, err, ErrMalformed)
}
