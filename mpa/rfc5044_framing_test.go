package mpa

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

// mixed is segments of all sorts of sizes, several to a Marker interval and
// several Marker intervals to one.
func mixed() (ulpdus [][]byte) {
	for _, n := range []int{14, 15, 16, 17, 18, 490, 502, 506, 507, 508, 509, 1000, 4096, 40, 40, 40, 65, int(MaxMULPDU), 20} {
		ulpdus = append(ulpdus, octets(n))
	}
	return ulpdus
}

func TestMPA_1_8_22_43_OneULPDUPerFPDU(t *testing.T) {
	ulpdus := [][]byte{octets(14), octets(333), octets(64), octets(1500)}
	for _, stage := range []bool{false, true} {
		wire := encoded(&encoder{crc: true}, stage, ulpdus...)
		for _, u := range ulpdus {
			require.Equal(t, len(u), int(binary.BigEndian.Uint16(wire)), "ULPDU_Length counts the ULPDU alone")
			require.Equal(t, u, wire[2:2+len(u)], "one whole ULPDU follows")
			wire = wire[(2+len(u)+3)/4*4+crcSize:]
		}
		require.Empty(t, wire, "nothing else is sent")
	}

	for _, markers := range []bool{false, true} {
		r := reference{markers: markers, crc: true}
		got, err := decoded(&decoder{markers: markers, crc: true}, r.stream(mixed()...))
		require.NoError(t, err)
		require.Equal(t, mixed(), got, "the boundaries are kept and nothing but ULPDUs handed up, Markers %t", markers)

		for _, n := range []int{502, 1007} { // with Markers, the first CRC field stands just before the second or third one
			r = reference{markers: markers, crc: true}
			two := [][]byte{octets(n), octets(20)}
			got, err = decoded(&decoder{markers: markers, crc: true}, r.stream(two...))
			require.NoError(t, err)
			require.Equal(t, two, got, "a boundary at a Marker, Markers %t", markers)
		}
	}
}

func TestMPA_5_6_ULPDUsComeInOrderWithTheirLength(t *testing.T) {
	r := reference{crc: true}
	wire := r.stream(mixed()...)
	s := &script{reads: [][]byte{wire[:len(wire)/2], wire[len(wire)/2:]}}
	c := conn(s, Terms{CRC: true})
	var p collector
	require.ErrorIs(t, drain(c, &p), transport.ErrAgain)
	require.Equal(t, mixed(), p.ulpdus, "every ULPDU with its length")
	require.Len(t, p.seqs, len(mixed()))
	for i, seq := range p.seqs {
		require.EqualValues(t, i, seq, "the sender's order")
	}
	require.False(t, c.Caps().OutOfOrder, "a socket hands up in order only")
}

func TestMPA_9_PadIsZeroAndRoundsToFour(t *testing.T) {
	dirty := chunks.Get()
	for i := range dirty {
		dirty[i] = 0xff
	}
	chunks.Put(dirty) // the PAD must be zero in used memory too
	for n := 14; n < 22; n++ {
		for _, stage := range []bool{false, true} {
			wire := encoded(&encoder{crc: true}, stage, octets(n))
			require.Zero(t, len(wire)%4, "an FPDU is whole words, ULPDU of %d octets", n)
			pad := wire[2+n : len(wire)-crcSize]
			require.Equal(t, make([]byte, -(2+n)&3), pad, "PAD of a ULPDU of %d octets", n)
		}
	}
}

func TestMPA_10_NonZeroPadIsAccepted(t *testing.T) {
	for n := 14; n < 18; n++ {
		r := reference{crc: true, pad: 0xee}
		got, err := decoded(&decoder{crc: true}, r.stream(octets(n)))
		require.NoError(t, err, "PAD that is not zero, its CRC right, ULPDU of %d octets", n)
		require.Equal(t, [][]byte{octets(n)}, got)
	}
	placed := 0 // straight into place, too
	for seed := range uint64(10) {
		rnd := rand.New(rand.NewPCG(seed, 10))
		c := randomResponses(rnd, reference{crc: true, pad: 0xee})
		e, _, err := c.run(t, rnd, true)
		require.NoError(t, err, "PAD that is not zero, seed %d", seed)
		require.Equal(t, len(c.want), e.turn, "every message has come, seed %d", seed)
		placed += e.placed
	}
	require.Positive(t, placed)
}

func TestMPA_11_CRCFieldIsNotExaminedWithoutCRCs(t *testing.T) {
	for _, field := range []uint32{0, 1, 0xffffffff} {
		r := reference{field: field}
		got, err := decoded(&decoder{}, r.stream(octets(20)))
		require.NoError(t, err, "CRC field %08x with CRCs off", field)
		require.Equal(t, [][]byte{octets(20)}, got)
	}
	wire := encoded(&encoder{}, false, octets(20))
	require.Equal(t, make([]byte, 4), wire[len(wire)-4:], "the field is present, and sent as 0")
}

func TestMPA_12_ReservedIsZeroOnSendAndIgnored(t *testing.T) {
	wire := encoded(&encoder{markers: true, crc: true}, false, octets(2000))
	for at := 0; at < len(wire); at += 512 {
		require.Equal(t, []byte{0, 0}, wire[at:at+2], "RESERVED of the Marker at %d", at)
	}
	r := reference{markers: true, crc: true, reserved: 0xa55a}
	got, err := decoded(&decoder{markers: true, crc: true}, r.stream(octets(2000)))
	require.NoError(t, err, "any RESERVED with a right CRC is taken")
	require.Equal(t, [][]byte{octets(2000)}, got)
}

func TestMPA_13_LowBitsOfThePointerAreZeroOnSendAndIgnored(t *testing.T) {
	wire := encoded(&encoder{markers: true, crc: true}, false, mixed()...)
	for at := 0; at < len(wire); at += 512 {
		require.Zero(t, wire[at+3]&3, "low bits of the FPDUPTR at %d", at)
	}
	for low := range 4 {
		r := reference{markers: true, crc: true, pointer: low}
		got, err := decoded(&decoder{markers: true, crc: true}, r.stream(mixed()...))
		require.NoError(t, err, "low bits %d are taken as 0", low)
		require.Equal(t, mixed(), got)
	}
}

func TestMPA_15_16_21_MarkersPointToTheFPDUTheyAreIn(t *testing.T) {
	for _, stage := range []bool{false, true} {
		r := reference{markers: true, crc: true}
		want := r.stream(mixed()...)
		e := encoder{markers: true, crc: true}
		require.Equal(t, want, encoded(&e, stage, mixed()...), "a Marker every 512 octets, staged %t", stage)
		require.EqualValues(t, len(want), e.pos, "Markers count as octets of the stream")
	}
}

func TestMPA_17_MarkersSurviveTheWrapOfSequenceNumbers(t *testing.T) {
	for _, wrap := range []uint64{1 << 16, 1 << 31, 1 << 32, 1 << 33} {
		for _, before := range []uint64{4, 20, 508, 512, 600, 4096} {
			start := wrap - before
			r := reference{pos: start, markers: true, crc: true}
			want := r.stream(octets(5000), octets(700), octets(14))
			e := encoder{pos: start, markers: true, crc: true}
			require.Equal(t, want, encoded(&e, false, octets(5000), octets(700), octets(14)), "from %#x on", start)
			got, err := decoded(&decoder{pos: start, markers: true, crc: true}, want)
			require.NoError(t, err, "from %#x on", start)
			require.Equal(t, [][]byte{octets(5000), octets(700), octets(14)}, got, "from %#x on", start)
		}
	}
}

func TestMPA_19_73_TheFirstOctetsAreAMarkerOfZeroOrTheLength(t *testing.T) {
	wire := encoded(&encoder{markers: true, crc: true}, false, octets(14))
	require.Equal(t, unhex("00000000 000e"), wire[:6], "a direction with Markers")
	wire = encoded(&encoder{crc: true}, false, octets(14))
	require.Equal(t, unhex("000e"), wire[:2], "a direction without Markers")
}

func TestMPA_42_AnySegmentationGivesTheSame(t *testing.T) {
	ulpdus := [][]byte{octets(14), octets(700), octets(33)}
	for _, markers := range []bool{false, true} {
		r := reference{markers: markers, crc: true}
		wire := r.stream(ulpdus...)
		receive := func(what string, reads ...[]byte) {
			s := &script{reads: reads}
			c := conn(s, Terms{CRC: true, ReceiveMarkers: markers})
			var p collector
			require.ErrorIs(t, drain(c, &p), transport.ErrAgain, what)
			require.Equal(t, ulpdus, p.ulpdus, what)
		}
		receive("in one piece", wire)
		receive("one octet at a time", pieces(wire, 1)...)
		for i := range wire {
			for j := i; j < len(wire); j += 127 {
				receive("in three parts", wire[:i], wire[i:j], wire[j:])
			}
		}
		var again [][]byte
		for _, b := range pieces(wire, 5) {
			again = append(again, b, nil) // the read buffer shrinks at each ErrAgain
		}
		s := &script{reads: again}
		c, p := conn(s, Terms{CRC: true, ReceiveMarkers: markers}), collector{}
		for len(s.reads) > 0 {
			require.ErrorIs(t, drain(c, &p), transport.ErrAgain)
		}
		require.Equal(t, ulpdus, p.ulpdus, "with pauses")
	}
}

func TestMPA_45_46_ULPDULengthTellsWhetherAnFPDUIsComplete(t *testing.T) {
	for _, markers := range []bool{false, true} {
		r := reference{markers: markers, crc: true}
		wire := r.stream(octets(1200))
		for n := range wire {
			f, fault := (&decoder{markers: markers, crc: true}).next(wire[:n])
			require.Nil(t, fault, "%d octets of %d", n, len(wire))
			require.Zero(t, f.size, "nothing is handed up of %d octets of %d", n, len(wire))
		}
	}
}

func TestMPA_82_MarkerThatDisagreesIsCode3(t *testing.T) {
	for _, off := range []int{4, -4, 512, 0x8000} {
		for _, crc := range []bool{true, false} {
			r := reference{markers: true, crc: crc}
			first := r.stream(octets(20))
			r.pointer = off
			wire := append(first, r.stream(octets(600))...)
			got, err := decoded(&decoder{markers: true, crc: crc}, wire)
			requireFault(t, transport.MPAMarker, err, "a Marker %d octets off, CRC %t", off, crc)
			require.Len(t, got, 1, "the FPDU before it was good")
		}
	}
	for _, at := range []int{512, 1024} { // the second and the third Marker of an FPDU
		r := reference{markers: true}
		wire := r.stream(octets(1200))
		wire[at+3] ^= 4
		_, err := decoded(&decoder{markers: true}, wire)
		requireFault(t, transport.MPAMarker, err, "the Marker at octet %d alone is wrong", at)
	}
	r := reference{markers: true, crc: true, pointer: 8}
	_, err := decoded(&decoder{markers: true, crc: true}, r.stream(octets(20)))
	requireFault(t, transport.MPAMarker, err, "a leading Marker that is not 0")
}

func requireFault(t *testing.T, want transport.Code, err error, what ...any) {
	t.Helper()
	var fault *transport.Fault
	require.ErrorAs(t, err, &fault, what...)
	require.Equal(t, want, fault.Code, what...)
}

func TestLengthThatNoDDPHeaderFitsIsCode3(t *testing.T) {
	for n := range minULPDU {
		r := reference{crc: true}
		_, err := decoded(&decoder{crc: true}, r.stream(octets(n)))
		requireFault(t, transport.MPAMarker, err, "a ULPDU of %d octets", n)
		r = reference{crc: true, field: 1}
		_, err = decoded(&decoder{crc: true}, r.stream(octets(n)))
		requireFault(t, transport.MPACRC, err, "a wrong CRC is told first")
	}
}

func TestFPDUsOfSiwBeyondTheLimitAreTaken(t *testing.T) {
	for _, markers := range []bool{false, true} {
		r := reference{markers: markers, crc: true}
		s := &script{reads: [][]byte{r.stream(octets(65535), octets(14))}}
		c, p := conn(s, Terms{CRC: true, ReceiveMarkers: markers}), collector{}
		require.ErrorIs(t, drain(c, &p), transport.ErrAgain)
		require.Equal(t, [][]byte{octets(65535), octets(14)}, p.ulpdus, "Markers %t", markers)
	}
}

func TestEncoderAgainstTheReference(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5044, 1))
	for _, markers := range []bool{false, true} {
		e, r := encoder{markers: markers, crc: true}, reference{markers: markers, crc: true}
		for range 300 {
			head := octets(rnd.IntN(19) + 14)
			var payload [][]byte
			ulpdu := append([]byte(nil), head...)
			for range rnd.IntN(4) {
				p := octets(rnd.IntN(3000))
				payload = append(payload, p)
				ulpdu = append(ulpdu, p...)
			}
			out := new(batch)
			e.encode(out, head, payload, len(ulpdu), rnd.IntN(2) == 0)
			var wire []byte
			for _, p := range out.pending() {
				wire = append(wire, p...)
			}
			require.Equal(t, r.fpdu(nil, ulpdu), wire, "an FPDU of %d octets, Markers %t", len(ulpdu), markers)
		}
	}
}
