package mpa

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/pcap"
)

// What Linux siw sent to siw, in full: each direction is decoded and encoded
// again to the same octets.
func TestCapturesAreMadeAgain(t *testing.T) {
	files, err := filepath.Glob("../internal/pcap/testdata/*.pcap")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 16, "captures")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			for _, s := range capture(t, file) {
				// In this one the responder's Terminate and reset cut off a Read Response.
				cut := filepath.Base(file) == "terminate_ddp_bounds.pcap"
				remakeConnection(t, s, cut)
			}
		})
	}
}

func capture(t *testing.T, file string) []pcap.Stream {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	streams, err := pcap.Streams(f)
	require.NoError(t, err)
	require.NotEmpty(t, streams)
	return streams
}

func remakeConnection(t *testing.T, s pcap.Stream, cut bool) {
	t.Helper()
	request, fromClient := remakeFrame(t, s.ClientBytes, false)
	reply, fromServer := remakeFrame(t, s.ServerBytes, true)
	if reply.Reject {
		require.Empty(t, fromClient, "nothing follows a refusal")
		require.Empty(t, fromServer, "nothing follows a refusal")
		return
	}
	crc := request.CRC || reply.CRC
	n := remakeDirection(t, fromClient, cut || s.ClientHole, reply.Markers, crc)
	m := remakeDirection(t, fromServer, s.ServerHole, request.Markers, crc)
	t.Logf("%v to %v: CRC %t, %d and %d FPDUs", s.Client, s.Server, crc, n, m)
}

// remakeFrame returns what follows the frame.
func remakeFrame(t *testing.T, b []byte, reply bool) (Frame, []byte) {
	t.Helper()
	f, n, err := parse(reply)(b)
	require.NoError(t, err)
	end := HeaderSize + n
	f.PrivateData = b[HeaderSize:end]
	want := append([]byte(nil), b[:end]...)
	want[keySize] &^= 0x0f // siw has a use for a reserved bit (its GSO experiment)
	require.Equal(t, want, appendTo(reply, &f, nil), "the frame made again")
	return f, b[end:]
}

// remakeDirection returns how many FPDUs there are. Only if cut may the octets
// end within one.
func remakeDirection(t *testing.T, b []byte, cut, markers, crc bool) int {
	t.Helper()
	d, e := decoder{markers: markers, crc: crc}, encoder{markers: markers, crc: crc}
	for count := 0; ; count++ {
		f, fault := d.next(b)
		require.Nil(t, fault, "FPDU %d", count)
		if f.size == 0 {
			require.True(t, cut || len(b) == 0, "FPDU %d is not whole", count)
			return count
		}
		want := b[:f.size]
		if !crc { // then siw leaves anything in the PAD and in the CRC field
			clear(want[f.off+f.n:])
		}
		require.Equal(t, want, encoded(&e, false, b[f.off:f.off+f.n]), "FPDU %d made again", count)
		b = b[f.size:]
	}
}
