package mpa

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever comes, the decoder neither panics nor reads or writes outside what it
// was given; and how the octets are cut up makes no difference.
func FuzzDecoder(f *testing.F) {
	for _, v := range vectors {
		f.Add(unhex(v.wire), v.markers, !v.noCRC, uint8(7))
	}
	r := reference{markers: true, crc: true}
	f.Add(r.stream(octets(1000), octets(14), octets(490)), true, true, uint8(100))
	f.Fuzz(func(t *testing.T, b []byte, markers, crc bool, cut uint8) {
		terms := &Terms{CRC: crc, ReceiveMarkers: markers}
		var p, q collector
		whole := drain(newConn(&script{reads: pieces(b, len(b)+1)}, Options{}, terms), &p)
		cutUp := drain(newConn(&script{reads: pieces(b, int(cut)+1)}, Options{}, terms), &q)
		require.Equal(t, p.ulpdus, q.ulpdus)
		require.Equal(t, whole.Error(), cutUp.Error())

		got, _ := decoded(&decoder{markers: markers, crc: crc}, b)
		require.Equal(t, p.ulpdus, got)
	})
}

// Every segment that goes in comes out.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("some segments of some sizes"), true, true, uint16(492))
	f.Add(octets(2000), false, true, uint16(0))
	f.Fuzz(func(t *testing.T, b []byte, markers, stage bool, pos uint16) {
		start := uint64(pos) &^ 3
		e, d := encoder{pos: start, markers: markers, crc: true}, decoder{pos: start, markers: markers, crc: true}
		var ulpdus [][]byte
		for rest := b; len(rest) >= minULPDU; {
			n := min(minULPDU+int(rest[0])*3, len(rest))
			ulpdus, rest = append(ulpdus, rest[:n]), rest[n:]
		}
		wire := encoded(&e, stage, ulpdus...)
		r := reference{pos: start, markers: markers, crc: true}
		require.Equal(t, r.stream(ulpdus...), wire)
		got, err := decoded(&d, wire)
		require.NoError(t, err)
		require.Equal(t, ulpdus, got)
	})
}

// A peer that answers anything leaves an error behind or a connection, and
// nothing else. What was read of its frame means the same when it is written.
func FuzzStartup(f *testing.F) {
	for _, v := range frameVectors {
		f.Add(unhex(v.wire), v.reply)
	}
	f.Fuzz(func(t *testing.T, b []byte, initiator bool) {
		sameFrame(t, b, initiator)
		s := &script{reads: pieces(b, 19), end: errTest}
		if !initiator {
			r, err := ReadRequest(t.Context(), s)
			require.Equal(t, err == nil, r != nil)
			return
		}
		c, terms, err := Connect(t.Context(), s, Options{}, 4, 4, nil)
		require.Equal(t, err == nil, c != nil)
		require.Equal(t, err == nil, terms != nil)
	})
}

// sameFrame reads a frame twice.
func sameFrame(t *testing.T, b []byte, reply bool) {
	frame, n, err := parse(reply)(b)
	if err != nil {
		return
	}
	require.LessOrEqual(t, n, MaxPrivateDataSize, "private data that a frame can have")
	frame.PrivateData = make([]byte, n)
	again, m, err := parse(reply)(appendTo(reply, &frame, nil))
	require.NoError(t, err)
	again.PrivateData = frame.PrivateData
	require.Equal(t, n, m)
	require.Equal(t, frame, again, "what is appended parses to the same")
}
