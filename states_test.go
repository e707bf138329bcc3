package iwarp_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
)

// TestVERBS_40_48_TerminateOfTheApplication: 0/0/00 without any header, after the last whole segment. Afterwards both
// sides can read the code.
func TestVERBS_40_48_TerminateOfTheApplication(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpSend}, iwarp.SendWR{ID: 2, Op: iwarp.OpRDMARead, Local: k.at(0, 1), Remote: remote})
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 3}))
		done := make(chan error, 1)
		go func() { done <- k.qp.Terminate() }()
		require.Equal(t, wiretest.Send(1, 0, ""), k.p.Segment())
		require.Equal(t, byte(1), k.p.Segment()[1]&0xf, "the Read Request")
		k.p.WantSegment("Terminate 0/0/00, HdrCt 000", "41 47 00000000 00000002 00000001 00000000", 0, 0, 0, 0)
		k.p.WantEOF("nothing follows it")
		k.p.Close()
		require.NoError(t, <-done)

		require.Equal(t, iwarp.StateError, k.qp.State())
		te := k.qp.Terminated()
		require.Equal(t, iwarp.TerminateError{Err: te.Err}, *te, "local, 0/0/00")
		require.Equal(t, []iwarp.Status{iwarp.StatusSuccess, iwarp.StatusFlushed, iwarp.StatusFlushed}, statuses(k.completes(k.cq, 3)))
		require.Same(t, te, k.wantEvent(iwarp.EventTerminated).Terminate)
		require.ErrorIs(t, k.qp.Terminate(), te, "it cannot be terminated twice")
	})
	client, server := connect(t, pairConfig{})
	require.NoError(t, client.qp.Terminate())
	<-server.qp.Done()
	te := server.qp.Terminated()
	require.Equal(t, iwarp.TerminateError{Remote: true}, *te)
	require.Same(t, te, server.wantEvent(iwarp.EventTerminateReceived).Terminate)
}

// TestVERBS_43_46_QPInTerminateIgnoresSegmentsAndRefusesWork: it ignores segments, refuses posts and transitions, and
// soon leaves that state.
func TestVERBS_43_46_QPInTerminateIgnoresSegmentsAndRefusesWork(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1, Local: k.at(0, 8)}))
		start := time.Now()
		k.p.Send(wiretest.Write(0x99, 0, "x"))
		k.p.Segment()
		k.p.WantEOF("our half ends after the Terminate")
		require.Equal(t, iwarp.StateTerminate, k.qp.State())
		k.p.Send(wiretest.Send(1, 0, "ignored"))
		for what, err := range map[string]error{
			"Terminate": k.qp.Terminate(),
			"PostSend":  k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}),
			"PostRecv":  k.qp.PostRecv(iwarp.RecvWR{}),
		} {
			require.ErrorIs(t, err, iwarp.ErrInvalidSTag, "%s is refused with the first cause", what)
		}
		<-k.qp.Done()
		require.Equal(t, iwarp.PeerEndTime, time.Since(start))
		require.Equal(t, iwarp.StateError, k.qp.State())
		require.Equal(t, []iwarp.Status{iwarp.StatusFlushed}, statuses(k.completes(k.cq, 1)))
		require.Zero(t, k.mem[0])
		k.wantNoCompletion("what was refused does not complete")
	})
}

// TestVERBS_45_46_ErrorIsFinal: a QP in Error has nothing outstanding, and never leaves that state.
func TestVERBS_45_46_ErrorIsFinal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead})
		require.NoError(t, k.qp.Abort())
		require.Equal(t, iwarp.StateError, k.qp.State())
		var wcs [2]iwarp.WC
		require.Equal(t, 1, k.cq.Poll(wcs[:]), "all is flushed when Abort returns")
		require.Equal(t, iwarp.StatusFlushed, wcs[0].Status)
		require.ErrorIs(t, k.qp.Terminate(), iwarp.ErrAborted)
		k.wantAllRefused(iwarp.ErrAborted)
		require.Equal(t, iwarp.StateError, k.qp.State())
		k.wantNoCompletion("nothing that was refused completes")
	})
}

// TestVERBS_47_BadClose: after our FIN the peer sends a message of any kind. The message is discarded and reported, and
// nothing more is sent.
func TestVERBS_47_BadClose(t *testing.T) {
	for name, message := range map[string][]byte{
		"a Send":         wiretest.Send(1, 0, "late"),
		"an RDMA Write":  wiretest.Write(0x99, 0, "late"),
		"a Read Request": wiretest.ReadRequest(1, 0x77, 0, 4, 0x99, 0),
		"an empty Send":  wiretest.Send(1, 0, ""),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newTalk(t, iwarp.QPConfig{}, nil)
				require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1, Local: k.at(0, 8)}))
				closed := make(chan error, 1)
				go func() { closed <- k.qp.Close() }()
				k.p.WantEOF("the FIN")
				require.Equal(t, iwarp.StateClosing, k.qp.State())
				require.ErrorIs(t, k.qp.Terminate(), net.ErrClosed, "no other transition is allowed")
				require.ErrorIs(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}), net.ErrClosed)

				start := time.Now()
				k.p.Send(message)
				synctest.Wait()
				require.Equal(t, iwarp.StateError, k.qp.State())
				k.p.Send(message)
				<-k.qp.Done()
				require.NoError(t, <-closed, "it is closed")
				require.Equal(t, iwarp.PeerEndTime, time.Since(start), "a peer that stays is not waited for longer")
				require.ErrorIs(t, k.wantEvent(iwarp.EventBadClose).Err, iwarp.ErrBadClose)
				require.ErrorIs(t, k.qp.Err(), iwarp.ErrBadClose)
				require.Nil(t, k.qp.Terminated())
				require.Equal(t, []iwarp.Status{iwarp.StatusFlushed}, statuses(k.completes(k.cq, 1)))
				require.Zero(t, k.mem[0])
			})
		})
	}
}

// TestVERBS_41_47_SegmentsAfterOurFIN: a Terminate, which is not answered, and an empty RDMA Write, which has no effect.
func TestVERBS_41_47_SegmentsAfterOurFIN(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpSend})
		last := k.p.Segment()
		closed := make(chan error, 1)
		go func() { closed <- k.qp.Close() }()
		k.p.WantEOF("the FIN")
		k.p.Send(wiretest.Write(0, 0, ""))
		synctest.Wait()
		require.Equal(t, iwarp.StateClosing, k.qp.State())
		k.p.Send(wiretest.Terminate(0x1202, wiretest.DDPHeader, last))
		synctest.Wait()
		k.p.Close()
		require.NoError(t, <-closed)
		require.ErrorIs(t, k.qp.Err(), iwarp.ErrNoReceive, "the peer had no receive for our last message")
		k.wantEvent(iwarp.EventTerminateReceived)
	})
}

// TestVERBS_42_AbortResets: without a Terminate.
func TestVERBS_42_AbortResets(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: k.at(0, 1), Remote: remote})
		k.p.Segment()
		require.NoError(t, k.qp.Abort())
		got, err := io.ReadAll(k.p.Conn)
		require.Empty(t, got, "no Terminate")
		require.Error(t, err, "a reset")
		require.False(t, errors.Is(err, io.EOF))
		require.Nil(t, k.qp.Terminated())
		require.Nil(t, k.wantEvent(iwarp.EventAborted).Terminate)
	})
}
