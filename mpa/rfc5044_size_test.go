package mpa

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMPA_34_35_40_MULPDUOfTheEMSS(t *testing.T) {
	for _, v := range []struct {
		emss            int
		without, within MULPDU
	}{
		{128, 128, 128},
		{134, 128, 128},
		{536, 530, 522},
		{1220, 1214, 1202},
		{1440, 1434, 1422},
		{1448, 1442, 1430},
		{1459, 1450, 1438},
		{1460, 1454, 1442},
		{8948, 8942, 8870},
		{8960, 8954, 8882},
		{65483, 64768, 64768},
		{0, 32768, 32768}, // not known, or no TCP segments to fit
	} {
		require.Equal(t, v.without, MULPDUFor(v.emss, false), "EMSS %d without Markers", v.emss)
		require.Equal(t, v.within, MULPDUFor(v.emss, true), "EMSS %d with Markers", v.emss)
	}
}

func TestMPA_3_37_MULPDUStaysInItsRange(t *testing.T) {
	for emss := range 70000 {
		for _, markers := range []bool{false, true} {
			m := MULPDUFor(emss, markers)
			if m < 128 || m > 64768 {
				require.Fail(t, "out of range", "EMSS %d: MULPDU %d", emss, m)
			}
		}
	}
}

func TestMULPDUFitsTheEMSSWhereverTheMarkersFall(t *testing.T) {
	for _, emss := range []int{140, 536, 1447, 1448, 1459, 8960} {
		n := int(MULPDUFor(emss, true))
		for pos := 0; pos < 512; pos += 4 {
			wire := encoded(&encoder{pos: uint64(pos), markers: true}, true, octets(n))
			require.LessOrEqual(t, len(wire), emss, "FPDU at octet %d for an EMSS of %d", pos, emss)
		}
	}
}

func TestMPA_2_38_MULPDUFollowsTheEMSS(t *testing.T) {
	s := &script{emss: 1448}
	c := conn(s, Terms{})
	require.Equal(t, 1442, c.MaxULPDU(), "what DDP is offered")
	s.emss = 536
	require.Equal(t, 530, c.MaxULPDU(), "after the path has changed")
	s.emss = 8960
	require.Equal(t, 8954, c.MaxULPDU(), "and for the better")
	s.emss = 536
	require.Equal(t, 522, conn(s, Terms{SendMarkers: true}).MaxULPDU(), "Markers that we send take room")
	require.Equal(t, 530, conn(s, Terms{ReceiveMarkers: true}).MaxULPDU(), "Markers that we receive do not")
}

func TestOptionsBoundTheMULPDU(t *testing.T) {
	for _, v := range []struct{ option, emss, want int }{
		{0, 65483, 64768}, {1 << 20, 65483, 64768}, {4096, 65483, 4096}, {4096, 1448, 1442}, {1, 1448, 128},
	} {
		c := newConn(&script{emss: v.emss}, Options{MaxULPDU: v.option}, &Terms{})
		require.Equal(t, v.want, c.MaxULPDU(), "%+v", v)
	}
}

func TestMPA_36_AGrantedSizeStaysValid(t *testing.T) {
	s := &script{emss: 8960}
	c := conn(s, Terms{CRC: true})
	n := c.MaxULPDU()
	s.emss = 536
	require.True(t, c.Append(nil, [][]byte{octets(n)}, false))
	require.NoError(t, c.Flush(true), "a ULPDU of the size granted before")
	r := reference{crc: true}
	require.Equal(t, r.stream(octets(n)), s.wire())
}

func TestMPA_4_ULPDUsOf1To64768OctetsAreTaken(t *testing.T) {
	for _, n := range []int{1, 2, 3, 128, 64767, 64768} {
		s := &script{}
		c := conn(s, Terms{CRC: true})
		require.True(t, c.Append(nil, [][]byte{octets(n)}, false), "%d octets", n)
		require.NoError(t, c.Flush(false), "%d octets", n)
		r := reference{crc: true}
		require.Equal(t, r.stream(octets(n)), s.wire(), "%d octets", n)
	}
	for _, n := range []int{0, 64769, 65535, 65536, 70000} {
		s := &script{}
		c := conn(s, Terms{CRC: true})
		require.True(t, c.Append(nil, [][]byte{octets(n)}, false), "the caller is not sent into a loop")
		require.ErrorContains(t, c.Flush(false), "want 1 to 64768", "%d octets", n)
		require.Empty(t, s.wire(), "nothing is sent of a ULPDU of %d octets", n)
	}
}

func TestMPA_41_WholeFPDUsLeaveInOneWrite(t *testing.T) {
	s := &script{}
	c := conn(s, Terms{CRC: true})
	for range 5 {
		require.True(t, c.Append(octets(14), [][]byte{octets(300)}, false))
	}
	require.Empty(t, s.writes, "nothing leaves before Flush")
	require.NoError(t, c.Flush(false))
	require.Len(t, s.writes, 1, "writes for five FPDUs")
}
