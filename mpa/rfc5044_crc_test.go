package mpa

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/crc32c"
	"github.com/goiwarp/iwarp/transport"
)

func TestMPA_23_30_CRC32cOfTheRFC(t *testing.T) {
	ascending, descending := make([]byte, 32), make([]byte, 32)
	for i := range ascending {
		ascending[i], descending[i] = byte(i), byte(31-i)
	}
	iscsi := unhex(`01c00000 00000000 00000000 00000000 14000000 00000400 00000014 00000018
		28000000 00000000 02000000 00000000`)
	for _, v := range []struct {
		in   []byte
		want uint32
	}{
		{[]byte("123456789"), 0xe3069283},
		{nil, 0},
		{make([]byte, 32), 0x8a9136aa},
		{bytes.Repeat([]byte{0xff}, 32), 0x62a8ab43},
		{ascending, 0x46dd794e},
		{descending, 0x113fdb5c},
		{iscsi, 0xd9963a56},
	} {
		require.Equal(t, v.want, crc32c.Checksum(v.in), "CRC32c of %x", v.in)
	}
	wire := encoded(&encoder{crc: true}, false, unhex(send24))
	require.Equal(t, unhex("b7243ec3"), wire[len(wire)-4:], "V3: the least significant octet goes first")
	require.EqualValues(t, 0x48674bc7, crc32c.Checksum(wire), "the residue over an FPDU and its CRC")
	for _, n := range []int{14, lendMin - 1, lendMin, fuseMin, 5000} {
		for _, stage := range []bool{false, true} {
			wire := encoded(&encoder{crc: true}, stage, octets(n))
			require.EqualValues(t, 0x48674bc7, crc32c.Checksum(wire), "%d octets, staged: %v", n, stage)
		}
	}
}

func TestMPA_27_CRCsAreInvisibleAbove(t *testing.T) {
	for _, crc := range []bool{false, true} {
		r := reference{crc: crc}
		got, err := decoded(&decoder{crc: crc}, r.stream(mixed()...))
		require.NoError(t, err)
		require.Equal(t, mixed(), got, "the same ULPDUs, CRC %t", crc)

		s := &script{emss: 1460}
		c := conn(s, Terms{CRC: crc})
		require.Equal(t, 1454, c.MaxULPDU(), "the same MULPDU, CRC %t", crc)
		for _, u := range mixed() {
			for _, stage := range []bool{false, true} {
				require.True(t, c.Append(u[:14], [][]byte{u[14 : 14+len(u[14:])/3], u[14+len(u[14:])/3:]}, stage))
				require.NoError(t, c.Flush(true))
			}
		}
		got, err = decoded(&decoder{crc: crc}, s.wire())
		require.NoError(t, err)
		for i, u := range mixed() {
			require.Equal(t, [][]byte{u, u}, got[2*i:][:2], "the same segments are sent, CRC %t", crc)
		}
	}
}

func TestMPA_33_44_86_NothingIsHandedUpUnverified(t *testing.T) {
	for _, markers := range []bool{false, true} {
		r := reference{markers: markers, crc: true}
		good, second := r.stream(octets(40)), r.stream(octets(600))
		third := r.stream(octets(40))
		for bit := 16; bit < len(second)*8; bit += 11 { // the length itself is another test
			wire := append(append(append([]byte(nil), good...), second...), third...)
			wire[len(good)+bit/8] ^= 1 << (bit % 8)
			s := &script{reads: [][]byte{wire}}
			c, p := conn(s, Terms{CRC: true, ReceiveMarkers: markers}), collector{}
			requireFault(t, transport.MPACRC, drain(c, &p), "bit %d flipped is reported", bit)
			require.Equal(t, [][]byte{octets(40)}, p.ulpdus, "bit %d flipped: only what came before is handed up", bit)
		}
	}
}

func TestCorruptLengthIsFound(t *testing.T) {
	r := reference{crc: true}
	wire := r.stream(octets(40), octets(40), octets(40))
	wire[1] ^= 8 // the first FPDU seems 8 octets longer
	got, err := decoded(&decoder{crc: true}, wire)
	requireFault(t, transport.MPACRC, err)
	require.Empty(t, got)
}

// Payload is copied in pieces of all sizes, with its CRC or before it, and into
// chunks that end in the middle of it.
func TestStagedPayloadIsInTheCRC(t *testing.T) {
	ulpdu := octets(20000)
	for _, markers := range []bool{false, true} {
		e, r, out := encoder{markers: markers, crc: true}, reference{markers: markers, crc: true}, new(batch)
		var want []byte
		for cut := range 40 {
			mid := 14 + cut*fuseMin/20
			e.encode(out, ulpdu[:14], [][]byte{ulpdu[14:mid], ulpdu[mid : mid+1], ulpdu[mid+1:]}, len(ulpdu), true)
			want = r.fpdu(want, ulpdu)
		}
		require.Greater(t, len(out.chunks), 10, "the chunks end anywhere")
		require.True(t, bytes.Equal(want, bytes.Join(out.pending(), nil)), "Markers %t", markers)
		out.release()
	}
}

// Payload that is lent has the batch's own octets around it, whatever the header, also where
// a chunk ends.
func TestMPA_8_9_LentPayloadHasItsEnds(t *testing.T) {
	for _, crc := range []bool{false, true} {
		e, r, out := encoder{crc: crc}, reference{crc: crc}, new(batch)
		var want []byte
		for i := range 2400 {
			head := []int{taggedLen, untaggedLen, 31}[i%3]
			ulpdu := octets(head + lendMin + i%5)
			e.encode(out, ulpdu[:head], [][]byte{ulpdu[head:]}, len(ulpdu), false)
			want = r.fpdu(want, ulpdu)
		}
		require.Len(t, out.loans, 2400)
		require.Len(t, out.chunks, 2)
		require.True(t, bytes.Equal(want, bytes.Join(out.pending(), nil)), "CRC %t", crc)
		require.EqualValues(t, len(want), e.pos)
		require.Equal(t, len(want), out.bytes)
		out.release()
	}
}

// TestMPA_9_PadOfLentPayloadHasRoomInItsChunk: wherever the chunk ends that the ends of an FPDU are put
// into, and however long its pad is.
func TestMPA_9_PadOfLentPayloadHasRoomInItsChunk(t *testing.T) {
	for _, head := range []int{taggedLen, untaggedLen, 31} {
		for n := range 4 {
			ulpdu := octets(head + lendMin + n)
			for room := 1; room < 2*head; room++ {
				e, r, out := encoder{crc: true}, reference{crc: true}, new(batch)
				out.room()
				out.fill = chunkSize - room
				e.encode(out, ulpdu[:head], [][]byte{ulpdu[head:]}, len(ulpdu), false)
				require.True(t, bytes.Equal(r.fpdu(nil, ulpdu), bytes.Join(out.pending(), nil)), "room for %d octets, head of %d, %d octets", room, head, len(ulpdu))
				out.release()
			}
		}
	}
}

// TestSmallSendsAndAWriteWithAPadFillAChunk: the same by the calls of DDP.
func TestSmallSendsAndAWriteWithAPadFillAChunk(t *testing.T) {
	s := &script{}
	c := conn(s, Terms{CRC: true})
	r := reference{crc: true}
	var want []byte
	add := func(head, payload int) {
		ulpdu := octets(head + payload)
		require.True(t, c.Append(ulpdu[:head], [][]byte{ulpdu[head:]}, false))
		want = r.fpdu(want, ulpdu)
	}
	for range 282 {
		add(untaggedLen, 208) // an FPDU of 232 octets
	}
	add(untaggedLen, 68) // 92: there is room for 20
	add(taggedLen, 257)
	require.NoError(t, c.Flush(false))
	require.True(t, bytes.Equal(want, s.wire()))
}
