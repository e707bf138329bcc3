package iwarp_test

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
)

// RFC 5041 section 3 says what DDP needs from the layer below it. Here MPA over a connection provides it, as its user
// and the peer observe.

func TestDDP_3_61_WorkThatCouldNotBeTransferredIsReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.posts(
			iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: k.at(0, 8), Remote: iwarp.RemoteBuffer{STag: 1, Len: 8}},
			iwarp.SendWR{ID: 2, Op: iwarp.OpSend, Local: k.at(0, 8)},
		)
		k.p.Abort()
		for i, wc := range k.completes(k.cq, 2) {
			require.Equal(t, uint64(i+1), wc.ID, "in the order of posting")
			require.ErrorIs(t, wc.Err(), iwarp.ErrFlushed)
			require.ErrorIs(t, wc.Err(), net.ErrClosed)
		}
		<-k.qp.Done()
		require.Error(t, k.qp.Err(), "the error of the layer below is passed up")
	})
}

// TestDDP_3_61_WorkThatTheConnectionHadNoRoomForIsReported: with the room of a pipe. Layers that keep messages may
// accept some more.
func TestDDP_3_61_WorkThatTheConnectionHadNoRoomForIsReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		posted, out := 0, 0
		wcs := make([]iwarp.WC, 1)
		for posted < out+3 { // until the connection takes no more
			require.Less(t, posted, 4000)
			k.posts(iwarp.SendWR{ID: uint64(posted), Op: iwarp.OpRDMAWrite, Local: k.at(0, talkMem), Remote: remote})
			posted++
			synctest.Wait()
			out += k.cq.Poll(wcs)
		}
		k.p.Abort()
		for i, wc := range k.completes(k.cq, posted-out) {
			require.Equal(t, uint64(out+i), wc.ID)
			require.ErrorIs(t, wc.Err(), iwarp.ErrFlushed, "what the connection had accepted and could not transfer")
		}
	})
}

func TestMPA_39_SegmentsFillTheMULPDU(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{MPA: iwarp.MPAOptions{MaxULPDU: 128}}, nil)
		fillRandom(k.mem[:300])
		k.posts(iwarp.SendWR{Op: iwarp.OpSend, Local: k.at(0, 300)})
		k.p.WantSegment("the first segment is as long as the MULPDU", "01 43 00000000 00000000 00000001 00000000", k.mem[:110]...)
		k.p.WantSegment("the second begins where it ended", "01 43 00000000 00000000 00000001 0000006e", k.mem[110:220]...)
		k.p.WantSegment("the last has the rest", "41 43 00000000 00000000 00000001 000000dc", k.mem[220:300]...)
	})
}

func TestDDP_4_7_SegmentsKeepTheirBoundariesAndLengths(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{Local: k.at(1000, 100)}))
		k.p.SendHex("two segments, of 3 octets", "01 43 00000000 00000000 00000001 00000000", 'a', 'b', 'c')
		k.p.SendHex("and of 2", "41 43 00000000 00000000 00000001 00000003", 'd', 'e')
		wcs := k.completes(k.cq, 1)
		require.Equal(t, uint32(5), wcs[0].Len, "the lengths of the segments add up")
		require.Equal(t, "abcde", string(k.mem[1000:1005]))
	})
}

func TestDDP_6_SegmentsAreProtectedByCRC32cUnlessBothSidesWaiveIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		bad := wiretest.FPDU(wiretest.Hex("c1 40 00000000 0000000000000000"))
		bad[len(bad)-1] ^= 1
		k.p.Write(bad)
		k.p.WantSegment("a bad digest is a CRC error of the LLP", "41 47 00000000 00000002 00000001 00000000 20 02 00 00")
	})
}

func TestDDP_8_10_StreamInErrorCarriesNoMoreAndItsConnectionEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.p.SendHex("a Write of an STag that does not exist", "c1 40 00000100 0000000000000000", 'x')
		k.p.Segment()
		require.Error(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}), "nothing more is taken")
		k.p.SendHex("a good Write after it", fmt.Sprintf("c1 40 %08x 0000000000000000", uint32(k.mr.STag())), 'x')
		k.p.WantEOF("the connection of the one stream ends after the Terminate")
		k.p.Close()
		<-k.qp.Done()
		require.Zero(t, k.mem[0], "what came after the error was not placed")
	})
}

func TestDDP_9_GracefulEndIsIndicated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.p.CloseWrite()
		e := <-k.rnic.Events()
		require.Equal(t, iwarp.EventClosed, e.Kind)
		require.NoError(t, e.Err)
		require.Same(t, k.qp, e.QP)
		k.p.WantEOF("our half is ended too")
	})
}

func TestRDMAP_80_AbortTearsDownAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		require.NoError(t, k.qp.Abort())
		_, err := k.p.Conn.Read(make([]byte, 1))
		require.Error(t, err)
		require.False(t, errors.Is(err, net.ErrClosed), "the peer sees a reset: %v", err)
	})
}

func TestRDMAP_117_OutboundReadsOfOneSideAreTheInboundOnesOfTheOther(t *testing.T) {
	client, server := connect(t, pairConfig{network: "pipe", client: iwarp.QPConfig{IRD: 3, ORD: 9}, server: iwarp.QPConfig{IRD: 5, ORD: 12}})
	require.Equal(t, server.qp.IRD(), client.qp.ORD(), "5 of the 9")
	require.Equal(t, client.qp.IRD(), server.qp.ORD(), "3 of the 12")
	require.Equal(t, 5, client.qp.ORD())
	require.Equal(t, 3, server.qp.ORD())
}

func TestMPA2_9_15_BothSidesLearnWhatTheOtherTold(t *testing.T) {
	client, server := connect(t, pairConfig{network: "pipe", client: iwarp.QPConfig{IRD: 3, ORD: 9}, server: iwarp.QPConfig{IRD: 5, ORD: 12}})
	require.Equal(t, []int{3, 9}, []int{server.qp.PeerIRD(), server.qp.PeerORD()}, "the Request as it was")
	require.Equal(t, []int{5, 3}, []int{client.qp.PeerIRD(), client.qp.PeerORD()}, "the Reply, bounded by the Request's IRD")

	client, server = connect(t, pairConfig{network: "pipe", client: iwarp.QPConfig{MPA: iwarp.MPAOptions{Revision: 1}}})
	require.Equal(t, -1, server.qp.PeerIRD(), "revision 1 tells nothing")
	require.Equal(t, -1, client.qp.PeerORD())
}
