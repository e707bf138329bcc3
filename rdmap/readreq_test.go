package rdmap

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	someReadRequest = ReadRequest{
		Sink: RemoteAddr{0x11223344, 0x0102030405060708},
		Size: 0xa1a2a3a4,
		Src:  RemoteAddr{0x55667788, 0x1112131415161718},
	}
	someReadRequestBytes = []byte{
		0x11, 0x22, 0x33, 0x44, // SinkSTag
		0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, // SinkTO
		0xa1, 0xa2, 0xa3, 0xa4, // RDMARDSZ
		0x55, 0x66, 0x77, 0x88, // SrcSTag
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, // SrcTO
	}
)

func TestRDMAP_23_ReadRequestLayout(t *testing.T) {
	require.Equal(t, someReadRequestBytes, someReadRequest.Append(nil))
	got, err := ParseReadRequest(someReadRequestBytes)
	require.NoError(t, err)
	require.Equal(t, someReadRequest, got)
}

func TestReadRequestTruncatedAtEveryLength(t *testing.T) {
	for n := range len(someReadRequestBytes) {
		_, err := ParseReadRequest(someReadRequestBytes[:n])
		require.Error(t, err, "%d octets", n)
	}
	_, err := ParseReadRequest(append(someReadRequest.Append(nil), 0))
	require.Error(t, err, "an octet more")
}

func TestReadRequestDoesNotAllocate(t *testing.T) {
	skipUnderRace(t)
	b := make([]byte, 0, ReadRequestLen)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		h, err := ParseReadRequest(someReadRequest.Append(b[:0]))
		if err != nil || h != someReadRequest {
			panic("not equal")
		}
	}))
}
