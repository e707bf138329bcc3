package iwarp

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// RFC 5041 section 3 says what DDP needs from the layer below it. Here MPA over a
// connection gives it, as seen by its user and by the peer.

func TestDDP_3_61_WorkThatCouldNotBeTransferredIsReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		k.posts(
			SendWR{ID: 1, Op: OpRDMARead, Local: k.at(0, 8), Remote: RemoteBuffer{STag: 1, Len: 8}},
			SendWR{ID: 2, Op: OpSend, Local: k.at(0, 8)},
		)
		require.NoError(t, k.p.c.(interface{ Abort() error }).Abort(), "the peer resets the connection")
		for i, wc := range k.completes(k.cq, 2) {
			require.Equal(t, uint64(i+1), wc.ID, "in the order of posting")
			require.ErrorIs(t, wc.Err(), ErrFlushed)
			require.ErrorIs(t, wc.Err(), net.ErrClosed)
		}
		<-k.qp.Done()
		require.Error(t, k.qp.Err(), "the error of the layer below is passed up")
	})
}

// TestDDP_3_61_WorkThatTheConnectionHadNoRoomForIsReported: as far as a pipe has room; layers
// that keep messages may still take some.
func TestDDP_3_61_WorkThatTheConnectionHadNoRoomForIsReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		posted, out := 0, 0
		wcs := make([]WC, 1)
		for posted < out+3 { // until the connection takes no more
			require.Less(t, posted, 4000)
			k.posts(SendWR{ID: uint64(posted), Op: OpRDMAWrite, Local: k.at(0, talkMem), Remote: remote})
			posted++
			synctest.Wait()
			out += k.cq.Poll(wcs)
		}
		require.NoError(t, k.p.c.(interface{ Abort() error }).Abort())
		for i, wc := range k.completes(k.cq, posted-out) {
			require.Equal(t, uint64(out+i), wc.ID)
			require.ErrorIs(t, wc.Err(), ErrFlushed, "what the connection had accepted and could not transfer")
		}
	})
}

func TestMPA_39_SegmentsFillTheMULPDU(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{MPA: MPAOptions{MaxULPDU: 128}}, nil)
		fillRandom(k.mem[:300])
		k.posts(SendWR{Op: OpSend, Local: k.at(0, 300)})
		k.p.wantSegment("the first segment is as long as the MULPDU", "01 43 00000000 00000000 00000001 00000000", k.mem[:110]...)
		k.p.wantSegment("the second begins where it ended", "01 43 00000000 00000000 00000001 0000006e", k.mem[110:220]...)
		k.p.wantSegment("the last has the rest", "41 43 00000000 00000000 00000001 000000dc", k.mem[220:300]...)
	})
}

func TestDDP_4_7_SegmentsKeepTheirBoundariesAndLengths(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(RecvWR{Local: k.at(1000, 100)}))
		k.p.sends("two segments, of 3 octets", "01 43 00000000 00000000 00000001 00000000", 'a', 'b', 'c')
		k.p.sends("and of 2", "41 43 00000000 00000000 00000001 00000003", 'd', 'e')
		wcs := k.completes(k.cq, 1)
		require.Equal(t, uint32(5), wcs[0].Len, "the lengths of the segments add up")
		require.Equal(t, "abcde", string(k.mem[1000:1005]))
	})
}

func TestDDP_6_SegmentsAreProtectedByCRC32cUnlessBothSidesWaiveIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		bad := fpdu(hx("c1 40 00000000 0000000000000000"))
		bad[len(bad)-1] ^= 1
		k.p.writes(bad)
		k.p.wantSegment("a bad digest is a CRC error of the LLP", "41 47 00000000 00000002 00000001 00000000 20 02 00 00")
	})
}

func TestDDP_8_10_StreamInErrorCarriesNoMoreAndItsConnectionEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		k.p.sends("a Write of an STag that does not exist", "c1 40 00000100 0000000000000000", 'x')
		k.p.segment()
		require.Error(t, k.qp.PostSend(SendWR{Op: OpSend}), "nothing more is taken")
		k.p.sends("a good Write behind it", fmt.Sprintf("c1 40 %08x 0000000000000000", uint32(k.mr.STag())), 'x')
		k.p.wantEnd("the connection of the one stream ends behind the Terminate")
		require.NoError(t, k.p.c.Close())
		<-k.qp.Done()
		require.Zero(t, k.mem[0], "what came behind the error was not placed")
	})
}

func TestDDP_9_GracefulEndIsIndicated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		require.NoError(t, k.p.c.(interface{ CloseWrite() error }).CloseWrite())
		e := <-k.rnic.Events()
		require.Equal(t, EventClosed, e.Kind)
		require.NoError(t, e.Err)
		require.Same(t, k.qp, e.QP)
		k.p.wantEnd("our half is ended too")
	})
}

func TestRDMAP_80_AbortTearsDownAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		require.NoError(t, k.qp.Abort())
		_, err := k.p.c.Read(make([]byte, 1))
		require.Error(t, err)
		require.False(t, errors.Is(err, net.ErrClosed), "the peer sees a reset: %v", err)
	})
}

func TestRDMAP_117_OutboundReadsOfOneSideAreTheInboundOnesOfTheOther(t *testing.T) {
	client, server := connect(t, pairConfig{network: "pipe", client: QPConfig{IRD: 3, ORD: 9}, server: QPConfig{IRD: 5, ORD: 12}})
	require.Equal(t, server.qp.IRD(), client.qp.ORD(), "5 of the 9")
	require.Equal(t, client.qp.IRD(), server.qp.ORD(), "3 of the 12")
	require.Equal(t, 5, client.qp.ORD())
	require.Equal(t, 3, server.qp.ORD())
}

func TestMPA2_9_15_BothSidesLearnWhatTheOtherTold(t *testing.T) {
	client, server := connect(t, pairConfig{network: "pipe", client: QPConfig{IRD: 3, ORD: 9}, server: QPConfig{IRD: 5, ORD: 12}})
	require.Equal(t, []int{3, 9}, []int{server.qp.PeerIRD(), server.qp.PeerORD()}, "the Request as it was")
	require.Equal(t, []int{5, 3}, []int{client.qp.PeerIRD(), client.qp.PeerORD()}, "the Reply, bounded by the Request's IRD")

	client, server = connect(t, pairConfig{network: "pipe", client: QPConfig{MPA: MPAOptions{Revision: 1}}})
	require.Equal(t, -1, server.qp.PeerIRD(), "revision 1 tells nothing")
	require.Equal(t, -1, client.qp.PeerORD())
}
