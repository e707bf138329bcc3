package mpa

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The segments of the vectors, without RDMAP's view of them.
var (
	send24   = "41 43 00000000 00000000 00000001 00000000" + strings.Repeat("00", 24)
	send24n2 = "41 43 00000000 00000000 00000002 00000000" + strings.Repeat("00", 24)
	sendHead = "41 43 00000000 00000000 00000001 00000000"
)

// vectors are V1 to V9 of RFC 5044 and of the layers above, each one FPDU: where
// it stands in its direction, what it carries and the whole of it.
var vectors = []struct {
	name    string
	pos     uint64
	markers bool
	noCRC   bool
	ulpdu   string
	wire    string
}{
	{"V1", 0, true, false, send24, "00000000 002a" + send24 + "52239983"},
	{
		"V2", 492, true, false, send24n2,
		"002a 41 43 00000000 00000000 00000002 00000000 00000014" + strings.Repeat("00", 24) + "84925898",
	},
	{"V3", 0, false, false, send24, "002a" + send24 + "b7243ec3"},
	{"V4", 0, false, false, "c140 00000000 0000000000000000", "000e c140 00000000 0000000000000000 a30572ab"},
	{"V4b", 0, false, false, "c140 00000001 0000000000000000", "000e c140 00000001 0000000000000000 ebd34c5f"},
	{"V4c", 0, true, false, "c140 00000000 0000000000000000", "00000000 000e c140 00000000 0000000000000000 77c9c755"},
	{
		"V5", 0, false, false, "4141 00000000 00000001 00000001 00000000" + strings.Repeat("00", 28),
		"002e 4141 00000000 00000001 00000001 00000000" + strings.Repeat("00", 28) + "f2c6dd3d",
	},
	{"V6", 0, false, false, sendHead, "0012" + sendHead + "587be8c4"},
	{"V7", 0, false, false, sendHead + "68656c6c6f", "0017" + sendHead + "68656c6c6f 000000 b990b10c"},
	{"V7b", 0, false, true, sendHead + "68656c6c6f", "0017" + sendHead + "68656c6c6f 000000 00000000"},
	{
		"V8", 0, false, false, "c140 11223344 0000000000001000 0001020304050607",
		"0016 c140 11223344 0000000000001000 0001020304050607 6bcb1435",
	},
	{
		"V9a", 0, false, false, "4147 00000000 00000002 00000001 00000000 20020000",
		"0016 4147 00000000 00000002 00000001 00000000 20020000 7fe42585",
	},
	{
		"V9b", 0, false, false, "4147 00000000 00000002 00000001 00000000 20030000",
		"0016 4147 00000000 00000002 00000001 00000000 20030000 01766420",
	},
	{
		"V9c", 0, false, false, "4147 00000000 00000002 00000001 00000000 20060000",
		"0016 4147 00000000 00000002 00000001 00000000 20060000 6540fb1b",
	},
	{
		"V9d", 0, false, false, "4147 00000000 00000002 00000001 00000000 20070000",
		"0016 4147 00000000 00000002 00000001 00000000 20070000 1bd2babe",
	},
}

func TestVectors(t *testing.T) {
	for _, v := range vectors {
		ulpdu, wire := unhex(v.ulpdu), unhex(v.wire)
		for _, stage := range []bool{false, true} {
			e := encoder{pos: v.pos, markers: v.markers, crc: !v.noCRC}
			require.Equal(t, wire, encoded(&e, stage, ulpdu), "the FPDU of %s, staged %t", v.name, stage)
		}
		d := decoder{pos: v.pos, markers: v.markers, crc: !v.noCRC}
		got, err := decoded(&d, wire)
		require.NoError(t, err, "what %s means", v.name)
		require.Equal(t, [][]byte{ulpdu}, got, "what %s means", v.name)
	}
}

func TestMPA_32_LeadingMarkerIsInTheCRC(t *testing.T) {
	wire := encoded(&encoder{markers: true, crc: true}, false, unhex(send24))
	require.Equal(t, unhex("52239983"), wire[len(wire)-4:], "the CRC of V1 begins at its Marker")
}

func TestMPA_20_EveryMarkerOfAnFPDUPointsToItsHeader(t *testing.T) {
	// V10: three Markers.
	payload := make([]byte, 1000)
	for i := range payload {
		payload[i] = byte(i)
	}
	wire := encoded(&encoder{markers: true, crc: true}, false, append(unhex(sendHead), payload...))
	require.Len(t, wire, 1036, "length of V10 on the wire")
	require.Equal(t, unhex("00000000 03fa"), wire[:6])
	require.Equal(t, unhex("000001fc"), wire[512:516], "second Marker")
	require.Equal(t, unhex("000003fc"), wire[1024:1028], "third Marker")
	require.Equal(t, unhex("5f7b58ca"), wire[1032:], "CRC")
}

func TestMPA_31_MarkerAfterThePadIsInTheCRC(t *testing.T) {
	// V11: the second Marker stands between the ULPDU and the CRC.
	ulpdu := append(unhex(sendHead), make([]byte, 488)...)
	wire := encoded(&encoder{markers: true, crc: true}, false, ulpdu)
	require.Len(t, wire, 520, "length of V11 on the wire")
	require.Equal(t, unhex("000001fc 38cf64e8"), wire[512:], "Marker and CRC")
	got, err := decoded(&decoder{markers: true, crc: true}, wire)
	require.NoError(t, err)
	require.Equal(t, [][]byte{ulpdu}, got)
}

func TestMPA_18_MarkerBetweenFPDUsBelongsToTheSecond(t *testing.T) {
	// V12: the first FPDU ends at octet 512 exactly.
	first := append(unhex(sendHead), make([]byte, 484)...)
	second := unhex("4143 00000000 00000000 00000002 00000000")
	e := encoder{markers: true, crc: true}
	wire := encoded(&e, false, first)
	require.Len(t, wire, 512, "nothing is sent for a Marker that no FPDU follows")
	require.Equal(t, unhex("a09bb55b"), wire[508:])
	wire = append(wire, encoded(&e, false, second)...)
	require.Equal(t, unhex("00000000 0012 4143 00000000 00000000 00000002 00000000 7c71e5b4"), wire[512:])
	got, err := decoded(&decoder{markers: true, crc: true}, wire)
	require.NoError(t, err)
	require.Equal(t, [][]byte{first, second}, got)
}
