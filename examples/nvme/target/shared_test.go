package target

import (
	"bytes"
	"context"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A gateConn is a connection that is not read while the gate is shut.
type gateConn struct {
	net.Conn
	gate *atomic.Pointer[chan struct{}] // nil: open
}

func (c gateConn) Read(p []byte) (int, error) {
	if shut := c.gate.Load(); shut != nil {
		<-*shut
	}
	return c.Conn.Read(p)
}

// gated connects two QPs. The second one reads through a gate.
func gated(t *testing.T, crc bool) (pd *iwarp.PD, a, b *iwarp.QP, gate *atomic.Pointer[chan struct{}]) {
	rnic, err := iwarp.Open(nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rnic.Close()) })
	pd, err = rnic.AllocPD()
	require.NoError(t, err)
	qc := iwarp.QPConfig{PD: pd, MPA: iwarp.MPAOptions{NoCRC: !crc}}
	gate = new(atomic.Pointer[chan struct{}])
	near, far := transport.Pipe(transport.PipeOptions{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if r, err := rnic.Server(context.Background(), near, nil); err == nil {
			a, _ = r.Accept(context.Background(), &qc)
		}
	})
	b, err = rnic.Client(context.Background(), gateConn{far, gate}, &qc)
	require.NoError(t, err)
	require.NoError(t, b.RDMARead(context.Background(), iwarp.SGE{}, iwarp.RemoteBuffer{})) // the first message is the client's
	wg.Wait()
	require.NotNil(t, a)
	return pd, a, b, gate
}

// TestNVME_62_WritesFromSharedMemory shows why the target copies what a host reads into a buffer. An RDMA Write posted
// from a namespace's own memory, such as a mapped file, takes its octets when the connection has room for them. A
// command of another queue that writes them meanwhile tears a block, or invalidates a computed CRC, which ends the
// connection.
func TestNVME_62_WritesFromSharedMemory(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the test is a data race")
	}
	for _, crc := range []bool{true, false} {
		virtual(t, func(t *testing.T) {
			disk, got := bytes.Repeat([]byte{1}, 64*lba), make([]byte, 64*lba)
			pd, server, client, gate := gated(t, crc)
			sink, err := pd.RegisterMR(got, stag.LocalWrite|stag.RemoteWrite, nil)
			require.NoError(t, err)
			shut := make(chan struct{})
			gate.Store(&shut)
			mr, err := pd.RegisterMR(disk, 0, nil)
			require.NoError(t, err)
			require.NoError(t, server.PostSend(iwarp.SendWR{
				Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Local: []iwarp.SGE{mr.Slice(0, len(disk))}, Remote: sink.Advertise(0, len(got)),
			}))
			synctest.Wait()
			fill(disk, 2) // the other queue
			close(shut)
			synctest.Wait()
			if crc {
				require.ErrorContains(t, client.Err(), "CRC error")
				return
			}
			torn := 0
			for i := 0; i < len(got); i += lba {
				n := bytes.Count(got[i:i+lba], []byte{1})
				if n > 0 && n < lba {
					torn++
				}
			}
			require.Positive(t, torn, "blocks with octets of before and after")
		})
	}
}

// TestAnSRQAboveTheLimit: it is refused before it allocates memory.
func TestAnSRQAboveTheLimit(t *testing.T) {
	for _, n := range []int{1 << 17, math.MaxInt} {
		_, err := New(&Config{SRQ: n})
		require.ErrorIs(t, err, iwarp.ErrLimit)
		require.ErrorContains(t, err, "Config.SRQ")
	}
}
