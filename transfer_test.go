package iwarp_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

func fillRandom(b []byte) {
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
}

// transports are the ways in which two QPs of this library can be connected.
var transports = map[string]pairConfig{
	"tcp":         {network: "tcp"},
	"tcp no crc":  {network: "tcp", client: iwarp.QPConfig{MPA: iwarp.MPAOptions{NoCRC: true}}, server: iwarp.QPConfig{MPA: iwarp.MPAOptions{NoCRC: true}}},
	"tcp markers": {network: "tcp", client: iwarp.QPConfig{MPA: iwarp.MPAOptions{Markers: true}}, server: iwarp.QPConfig{MPA: iwarp.MPAOptions{Markers: true}}},
	"tcp rev 1":   {network: "tcp", client: iwarp.QPConfig{MPA: iwarp.MPAOptions{Revision: 1}}},
	"small ULPDU": {network: "tcp", client: iwarp.QPConfig{MPA: iwarp.MPAOptions{MaxULPDU: 128}}, server: iwarp.QPConfig{MPA: iwarp.MPAOptions{MaxULPDU: 1000}}},
	"pipe":        {network: "pipe"},
}

func TestVERBS_68_WriteReadSend(t *testing.T) {
	for name, pc := range transports {
		t.Run(name, func(t *testing.T) { writeReadSend(t, pc) })
	}
}

func writeReadSend(t *testing.T, pc pairConfig) {
	client, server := connect(t, pc)
	ctx := testContext(t)
	for _, n := range []int{1, 3, 1000, 65537, 3 << 20} {
		src, srcMR := client.register(n, stag.LocalWrite, nil)
		dst, dstMR := server.register(n, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
		fillRandom(src)
		require.NoError(t, client.qp.RDMAWrite(ctx, dstMR.Advertise(0, n), srcMR.Slice(0, n)))
		back, backMR := client.register(n, stag.LocalWrite, nil)
		require.NoError(t, client.qp.RDMARead(ctx, backMR.Slice(0, n), dstMR.Advertise(0, n)))
		require.True(t, bytes.Equal(src, dst), "%d octets written", n)
		require.True(t, bytes.Equal(src, back), "%d octets read back", n)

		in, inMR := server.register(n, stag.LocalWrite, nil)
		got := make(chan int, 1)
		go func() {
			n, err := server.qp.Recv(ctx, inMR.Slice(0, n))
			require.NoError(t, err)
			got <- n
		}()
		require.NoError(t, client.qp.Send(ctx, srcMR.Slice(0, n)))
		require.Equal(t, n, <-got)
		require.True(t, bytes.Equal(src, in), "%d octets sent", n)
	}
	require.NoError(t, client.qp.Close())
	<-server.qp.Done()
	require.NoError(t, server.qp.Err())
	require.Equal(t, iwarp.StateIdle, server.qp.State())
}

// TestReadsIntoTheSameMemory: Reads with overlapping sinks leave the octets of any of them (RFC 5040 section 5.5 rule
// 3). The connection goes on.
func TestReadsIntoTheSameMemory(t *testing.T) {
	const n, times = 64 << 10, 64
	client, server := connect(t, transports["tcp"])
	ctx := testContext(t)
	src, srcMR := server.register(times*n, stag.LocalWrite|stag.RemoteRead, nil)
	fillRandom(src)
	dst, dstMR := client.register(n+n/2, stag.LocalWrite, nil)
	var wrs []iwarp.SendWR
	for i := range times {
		wrs = append(wrs, iwarp.SendWR{Op: iwarp.OpRDMARead, Flags: iwarp.Unsignaled, Local: []iwarp.SGE{dstMR.Slice(i%2*n/2, n)}, Remote: srcMR.Advertise(i*n, n)})
	}
	require.NoError(t, client.qp.PostSend(wrs...))
	require.NoError(t, client.qp.RDMARead(ctx, dstMR.Slice(0, n), srcMR.Advertise(0, n)))
	require.True(t, bytes.Equal(src[:n], dst[:n]), "the last one wins")
}
