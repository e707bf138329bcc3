package iwarp_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// smallTCP returns the two ends of a TCP connection that holds little.
func smallTCP(t *testing.T) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	ca, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	cb, err := l.Accept()
	require.NoError(t, err)
	a, b = ca.(*net.TCPConn), cb.(*net.TCPConn)
	for _, c := range []*net.TCPConn{a, b} {
		require.NoError(t, errors.Join(c.SetReadBuffer(32<<10), c.SetWriteBuffer(32<<10)))
	}
	return a, b
}

// TestRDMAP_37_110_111_BothSidesFloodReads: each side asks for much more than the
// connection holds before it sees any of it. Answers do not wait for each other.
func TestRDMAP_37_110_111_BothSidesFloodReads(t *testing.T) {
	ctx := testContext(t)
	client, server := newSide(t, nil), newSide(t, nil)
	client.over(server, func() (a, b net.Conn) { return smallTCP(t) })

	const reads, size = 48, 100_000
	floods := []*flood{newFlood(client, server, reads, size), newFlood(server, client, reads, size)}
	for _, f := range floods {
		f.post(t)
	}
	for _, f := range floods {
		f.wait(t, ctx)
	}
}

// A flood is many RDMA Reads by one side of the other's memory.
type flood struct {
	by       *side
	src, dst []byte
	from, to *iwarp.MR
	n, size  int
}

func newFlood(by, of *side, n, size int) *flood {
	f := &flood{by: by, n: n, size: size}
	f.src, f.from = of.register(size, stag.RemoteRead, nil)
	fillRandom(f.src)
	f.dst, f.to = by.register(n*size, stag.LocalWrite, nil)
	return f
}

func (f *flood) post(t *testing.T) {
	for i := range f.n {
		require.NoError(t, f.by.qp.PostSend(iwarp.SendWR{
			ID: uint64(i), Op: iwarp.OpRDMARead,
			Local: []iwarp.SGE{f.to.Slice(i*f.size, f.size)}, Remote: f.from.Advertise(0, f.size),
		}))
	}
}

func (f *flood) wait(t *testing.T, ctx context.Context) {
	var wcs [1]iwarp.WC
	for i := range f.n {
		_, err := f.by.qp.SendCQ().Wait(ctx, wcs[:])
		require.NoError(t, err)
		require.NoError(t, wcs[0].Err())
		require.Equal(t, uint64(i), wcs[0].ID, "Reads complete in order")
		require.True(t, bytes.Equal(f.src, f.dst[i*f.size:][:f.size]), "Read %d brought what is there", i)
	}
}

// TestRDMAP_109_ARCH_23_PeerReadsNothing: the peer sends as many Read Requests as it may, and takes no response. Its
// messages are still served, and the QP can be closed.
func TestRDMAP_109_ARCH_23_PeerReadsNothing(t *testing.T) {
	for name, end := range map[string]func(qp *iwarp.QP) error{
		"close": func(qp *iwarp.QP) error {
			if err := qp.Close(); !errors.Is(err, os.ErrDeadlineExceeded) {
				return errors.New("Close should time out")
			}
			return nil
		},
		"abort": func(qp *iwarp.QP) error { return qp.Abort() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVictim(t, iwarp.QPConfig{IRD: 8, ORD: 2})
				v.works()
				const size = 4 << 20
				_, large := v.register(size, stag.RemoteRead, nil)
				for msn := range uint32(8) {
					v.p.Send(wiretest.ReadRequest(msn+1, 1, 0, size, large.STag(), 0))
				}
				time.Sleep(time.Second)
				for range 5 { // our own work queues up behind the answers
					require.NoError(t, v.qp.PostSend(iwarp.SendWR{ID: 3, Op: iwarp.OpRDMARead, Local: []iwarp.SGE{v.sink.Slice(0, 1)}, Remote: iwarp.RemoteBuffer{Len: 1}}))
				}
				v.p.Send(wiretest.Write(v.mr.STag(), regionTO, "still"))
				v.p.Send(wiretest.Send(1, 0, "served"))
				v.p.Send(wiretest.ReadResponse(0xc1, v.sink.STag(), 0, "sixteen octets.."))
				synctest.Wait()
				copy(v.want[regionAt:], "still")
				copy(v.want[recvAt:], "served")
				copy(v.want[sinkAt:], "sixteen octets..")
				require.Equal(t, v.want, v.arena, "what the peer sends is served all the while")
				require.Equal(t, iwarp.StateRTS, v.qp.State())

				require.NoError(t, end(v.qp))
				require.ErrorIs(t, v.qp.Err(), net.ErrClosed)
				var wcs [16]iwarp.WC
				require.Equal(t, 7, v.cq.Poll(wcs[:]), "what was posted completes, once")
				v.othersLive()
			})
		})
	}
}
