package mpa

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// dividedDigests counts the FPDUs of a write within whose PAD and CRC a TCP segment begins, if one begins after each
// emss octets.
func dividedDigests(t *testing.T, write []byte, emss int) (n int) {
	t.Helper()
	for at := 0; at < len(write); {
		length := int(binary.BigEndian.Uint16(write[at:]))
		body, end := at+lengthSize+length, at+wholeSize(length)
		require.LessOrEqual(t, end, len(write), "a write ends with an FPDU")
		for edge := body + 1; edge < end; edge++ {
			if edge%emss == 0 {
				n++
			}
		}
		at = end
	}
	return n
}

// siw mistakes the CRC of an FPDU whose PAD and CRC come in two pieces.
func TestNoSegmentBeginsWithinPADAndCRC(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, emss := range []int{536, 1440, 1448, 1459, 8948} {
		s := &script{emss: emss}
		c := conn(s, Terms{CRC: true})
		fpdus, largest := 0, c.MaxULPDU()-14
		for range 2000 {
			n := random.IntN(64)
			if random.IntN(8) == 0 {
				n = random.IntN(largest + 1)
			}
			for !c.Append(octets(14), [][]byte{octets(n)}, random.IntN(2) == 0) {
				require.NoError(t, c.Flush(false))
			}
			fpdus++
		}
		require.NoError(t, c.Flush(false))
		for _, w := range s.writes {
			require.Zero(t, dividedDigests(t, w, emss), "EMSS %d: divided digests in a write", emss)
		}
		require.Less(t, len(s.writes), fpdus/20, "EMSS %d: writes of %d FPDUs", emss, fpdus)
	}
}

// Without digests there is nothing to be divided, and where the EMSS is not known there is no saying where.
func TestBatchesEndForDigestsOnly(t *testing.T) {
	for _, v := range []struct {
		name  string
		emss  int
		terms Terms
	}{
		{"no CRC", 536, Terms{}},
		{"EMSS not known", 0, Terms{CRC: true}},
	} {
		t.Run(v.name, func(t *testing.T) {
			s := &script{emss: v.emss}
			c := conn(s, v.terms)
			for range 900 {
				require.True(t, c.Append(octets(14), [][]byte{octets(13)}, true))
			}
			require.NoError(t, c.Flush(false))
			require.Len(t, s.writes, 1)
		})
	}
}

// The path may have got narrower since DDP was told the size of a segment: such an FPDU has no place without an edge in it.
func TestAnEmptyBatchTakesAnFPDULongerThanASegment(t *testing.T) {
	s := &script{emss: 100}
	c := conn(s, Terms{CRC: true})
	require.True(t, c.Append(octets(14), [][]byte{octets(97 - 14 + 100)}, true))
	require.NoError(t, c.Flush(false))
	require.NotZero(t, dividedDigests(t, s.wire(), 100), "the test does not test what it should")
}
