package iwarp_test

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// TestRDMAP_79_80_PeerThatDoesNotEnd: either side's Terminate has ended the stream. The peer goes on sending, or sends
// nothing, and never ends its half. The QP waits for it, but not for long.
func TestRDMAP_79_80_PeerThatDoesNotEnd(t *testing.T) {
	for ending, last := range map[string][]byte{
		"its Terminate": wiretest.Untagged(0x41, 0x47, 0, 2, 1, 0, "\x02\x07\x00\x00"),
		"our Terminate": wiretest.Untagged(0x41, 0x4f, 0, 0, 1, 0, ""),
	} {
		for _, talks := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				v := newVictim(t, iwarp.QPConfig{})
				v.works()
				start := time.Now()
				v.p.Send(last)
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					for talks {
						if _, err := v.p.Conn.Write(wiretest.FPDU(wiretest.Write(v.mr.STag(), regionTO, "not placed"))); err != nil {
							return
						}
						time.Sleep(time.Millisecond)
					}
				}()
				<-v.qp.Done()
				require.Equal(t, iwarp.PeerEndTime, time.Since(start), "an end at once could destroy the Terminate: %s, peer talks: %t", ending, talks)
				require.ErrorIs(t, v.qp.Err(), net.ErrClosed)
				require.Equal(t, v.want, v.arena, "nothing is placed any more")
				<-gone
				v.othersLive()
			})
		}
	}
}

// TestRDMAP_79_116_TerminateThatThePeerDoesNotRead: the peer requests more than it may and reads nothing, so that not
// even the Terminate can leave.
func TestRDMAP_79_116_TerminateThatThePeerDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVictim(t, iwarp.QPConfig{IRD: 1})
		const size = 4 << 20 // more than the connection and a batch hold
		_, large := v.register(size, stag.RemoteRead, nil)
		start := time.Now()
		for msn := range uint32(2) {
			v.p.Send(wiretest.ReadRequest(msn+1, 1, 0, size, large.STag(), 0))
		}
		<-v.qp.Done()
		v.wantCause(v.qp.Err(), attack{code: 0x1203})
		require.LessOrEqual(t, time.Since(start), iwarp.PeerEndTime, "the QP does not wait longer for its Terminate to leave")
		v.othersLive()
	})
}

// TestRDMAP_80_PeerThatHasEndedItsHalfAndReadsNothing: nothing more arrives, and queued data cannot leave.
func TestRDMAP_80_PeerThatHasEndedItsHalfAndReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVictim(t, iwarp.QPConfig{})
		const size = 4 << 20 // more than the connection and a batch hold
		_, large := v.register(size, stag.LocalWrite, nil)
		require.NoError(t, v.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{large.Slice(0, size)}, Remote: iwarp.RemoteBuffer{Len: size}}))
		synctest.Wait()
		start := time.Now()
		v.p.CloseWrite()
		<-v.qp.Done()
		require.Equal(t, 2*time.Second, time.Since(start))
		require.ErrorIs(t, v.qp.Err(), os.ErrDeadlineExceeded)
		v.othersLive()
	})
}

// A stuck connection takes no more octets, and reports no end.
type stuck struct {
	net.Conn
	is atomic.Bool
}

func (c *stuck) Write(b []byte) (int, error) {
	if c.is.Load() {
		return 0, syscall.EPIPE
	}
	return c.Conn.Write(b)
}

// TestRDMAP_80_ConnectionThatTakesNothingMore: the QP waits for what the peer may have sent before, but not for long.
func TestRDMAP_80_ConnectionThatTakesNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := newSide(t, nil), newSide(t, nil)
		var c *stuck
		client.over(server, func() (net.Conn, net.Conn) {
			a, b := transport.Pipe(transport.PipeOptions{})
			c = &stuck{Conn: a}
			return c, b
		})
		c.is.Store(true)
		start := time.Now()
		require.NoError(t, client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}))
		<-client.qp.Done()
		require.Equal(t, 500*time.Millisecond, time.Since(start))
		require.ErrorIs(t, client.qp.Err(), syscall.EPIPE)
	})
}

// TestDDP_65_77_ARCH_11_WaitForAReceiveDelaysNothingElse: while a message waits for a receive, and this side reads
// nothing, everything else on this side still works.
func TestDDP_65_77_ARCH_11_WaitForAReceiveDelaysNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVictim(t, iwarp.QPConfig{RNRWait: 24 * time.Hour})
		v.p.Send(wiretest.Send(1, 0, "waits"))
		synctest.Wait()
		start := time.Now()
		require.NoError(t, v.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("hi")}))
		v.p.WantSegment("sending goes on", "41 43 00000000 00000000 00000001 00000000", 'h', 'i')
		require.NoError(t, v.mr.Invalidate(context.Background()))
		require.NoError(t, v.recv.Close())
		v.othersLive()
		require.NoError(t, v.qp.Abort())
		require.Zero(t, time.Since(start), "nothing has waited for the receive")
		require.Equal(t, v.want, v.arena, "the message is not placed")
	})
}
