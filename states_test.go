package iwarp

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/qpconn"
)

// TestVERBS_40_48_TerminateOfTheApplication: 0/0/00 without any header, behind the last whole
// segment. Both sides can ask for it afterwards.
func TestVERBS_40_48_TerminateOfTheApplication(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		k.posts(SendWR{ID: 1, Op: OpSend}, SendWR{ID: 2, Op: OpRDMARead, Local: k.at(0, 1), Remote: remote})
		require.NoError(t, k.qp.PostRecv(RecvWR{ID: 3}))
		done := make(chan error, 1)
		go func() { done <- k.qp.Terminate() }()
		require.Equal(t, send(1, 0, ""), k.p.segment())
		require.Equal(t, byte(1), k.p.segment()[1]&0xf, "the Read Request")
		k.p.wantSegment("Terminate 0/0/00, HdrCt 000", "41 47 00000000 00000002 00000001 00000000", 0, 0, 0, 0)
		k.p.wantEnd("nothing follows it")
		require.NoError(t, k.p.c.Close())
		require.NoError(t, <-done)

		require.Equal(t, StateError, k.qp.State())
		te := k.qp.Terminated()
		require.Equal(t, TerminateError{Err: te.Err}, *te, "local, 0/0/00")
		require.Equal(t, []Status{StatusSuccess, StatusFlushed, StatusFlushed}, statuses(k.completes(k.cq, 3)))
		require.Same(t, te, k.wantEvent(EventTerminated).Terminate)
		require.ErrorIs(t, k.qp.Terminate(), te, "it cannot be terminated twice")
	})
	client, server := connect(t, pairConfig{})
	require.NoError(t, client.qp.Terminate())
	<-server.qp.Done()
	te := server.qp.Terminated()
	require.Equal(t, TerminateError{Remote: true}, *te)
	require.Same(t, te, server.wantEvent(EventTerminateReceived).Terminate)
}

// TestVERBS_43_46_NothingIsAskedOfAQPInTerminate: segments are ignored, posts and transitions are
// refused, and it does not stay so for long.
func TestVERBS_43_46_NothingIsAskedOfAQPInTerminate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(RecvWR{ID: 1, Local: k.at(0, 8)}))
		start := time.Now()
		k.p.writes(fpdu(write(0x99, 0, "x")))
		k.p.segment()
		k.p.wantEnd("our half ends behind the Terminate")
		require.Equal(t, StateTerminate, k.qp.State())
		k.p.writes(fpdu(send(1, 0, "ignored")))
		for what, err := range map[string]error{
			"Terminate": k.qp.Terminate(),
			"PostSend":  k.qp.PostSend(SendWR{Op: OpSend}),
			"PostRecv":  k.qp.PostRecv(RecvWR{}),
		} {
			require.ErrorIs(t, err, ErrInvalidSTag, "%s is refused with the first cause", what)
		}
		<-k.qp.Done()
		require.Equal(t, qpconn.PeerEndTime, time.Since(start))
		require.Equal(t, StateError, k.qp.State())
		require.Equal(t, []Status{StatusFlushed}, statuses(k.completes(k.cq, 1)))
		require.Zero(t, k.mem[0])
		k.wantNoCompletion("what was refused does not complete")
	})
}

// TestVERBS_45_46_ErrorIsFinal: a QP in Error has nothing outstanding, and nothing leads out.
func TestVERBS_45_46_ErrorIsFinal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		k.posts(SendWR{ID: 1, Op: OpRDMARead})
		require.NoError(t, k.qp.Abort())
		require.Equal(t, StateError, k.qp.State())
		var wcs [2]WC
		require.Equal(t, 1, k.cq.Poll(wcs[:]), "all is flushed when Abort returns")
		require.Equal(t, StatusFlushed, wcs[0].Status)
		require.ErrorIs(t, k.qp.Terminate(), errAborted)
		k.wantAllRefused(errAborted)
		require.Equal(t, StateError, k.qp.State())
		k.wantNoCompletion("nothing that was refused completes")
	})
}

// TestVERBS_47_BadClose: after our FIN the peer sends a message, whichever it is. That is thrown
// away and reported; nothing is sent any more.
func TestVERBS_47_BadClose(t *testing.T) {
	for name, message := range map[string][]byte{
		"a Send":         send(1, 0, "late"),
		"an RDMA Write":  write(0x99, 0, "late"),
		"a Read Request": readRequest(1, 0x77, 0, 4, 0x99, 0),
		"an empty Send":  send(1, 0, ""),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newTalk(t, QPConfig{}, nil)
				require.NoError(t, k.qp.PostRecv(RecvWR{ID: 1, Local: k.at(0, 8)}))
				closed := make(chan error, 1)
				go func() { closed <- k.qp.Close() }()
				k.p.wantEnd("the FIN")
				require.Equal(t, StateClosing, k.qp.State())
				require.ErrorIs(t, k.qp.Terminate(), net.ErrClosed, "no other transition is allowed")
				require.ErrorIs(t, k.qp.PostSend(SendWR{Op: OpSend}), net.ErrClosed)

				start := time.Now()
				k.p.writes(fpdu(message))
				synctest.Wait()
				require.Equal(t, StateError, k.qp.State())
				k.p.writes(fpdu(message))
				<-k.qp.Done()
				require.NoError(t, <-closed, "it is closed")
				require.Equal(t, qpconn.PeerEndTime, time.Since(start), "a peer that stays is not waited for longer")
				require.ErrorIs(t, k.wantEvent(EventBadClose).Err, errBadClose)
				require.ErrorIs(t, k.qp.Err(), errBadClose)
				require.Nil(t, k.qp.Terminated())
				require.Equal(t, []Status{StatusFlushed}, statuses(k.completes(k.cq, 1)))
				require.Zero(t, k.mem[0])
			})
		})
	}
}

// TestVERBS_41_47_WhatMayComeBehindOurFIN: a Terminate, which is not answered, and an empty
// RDMA Write, which means nothing.
func TestVERBS_41_47_WhatMayComeBehindOurFIN(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		k.posts(SendWR{ID: 1, Op: OpSend})
		last := k.p.segment()
		closed := make(chan error, 1)
		go func() { closed <- k.qp.Close() }()
		k.p.wantEnd("the FIN")
		k.p.writes(fpdu(write(0, 0, "")))
		synctest.Wait()
		require.Equal(t, StateClosing, k.qp.State())
		k.p.writes(fpdu(terminate(0x1202, tellsHeader, last)))
		synctest.Wait()
		require.NoError(t, k.p.c.Close())
		require.NoError(t, <-closed)
		require.ErrorIs(t, k.qp.Err(), ErrNoReceive, "the peer had no receive for our last message")
		k.wantEvent(EventTerminateReceived)
	})
}

// TestVERBS_42_AbortResets: without a Terminate.
func TestVERBS_42_AbortResets(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		k.posts(SendWR{ID: 1, Op: OpRDMARead, Local: k.at(0, 1), Remote: remote})
		k.p.segment()
		require.NoError(t, k.qp.Abort())
		got, err := io.ReadAll(k.p.c)
		require.Empty(t, got, "no Terminate")
		require.Error(t, err, "a reset")
		require.False(t, errors.Is(err, io.EOF))
		require.Nil(t, k.qp.Terminated())
		require.Nil(t, k.wantEvent(EventAborted).Terminate)
	})
}
