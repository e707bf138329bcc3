package iwarp_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

func TestVERBS_89_FullEventChannelDropsTheNewest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		events := s.rnic.Events()
		for range iwarp.EventDepth {
			s.rnic.Raise(iwarp.Event{Kind: iwarp.EventClosed})
		}
		require.Zero(t, s.rnic.EventsDropped())
		_, qp := responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
		require.NoError(t, qp.Abort(), "a program that does not read Events blocks nothing")
		require.EqualValues(t, 1, s.rnic.EventsDropped())
		require.NoError(t, s.rnic.Close())
		require.Len(t, s.rnic.Events(), iwarp.EventDepth, "a program that asks for the channel after Close finds them, too")
		for range iwarp.EventDepth {
			require.Equal(t, iwarp.EventClosed, (<-events).Kind, "the oldest are kept, also after Close")
		}
		_, open := <-events
		require.False(t, open, "Close ends the channel")
		_, open = <-s.rnic.Events()
		require.False(t, open, "whenever it is asked for")
		require.NoError(t, s.rnic.Close(), "closing again does nothing")
	})
}

func TestNamesOfKindsStatesAndOps(t *testing.T) {
	for k := iwarp.EventClosed; k <= iwarp.EventRecvLimit; k++ {
		require.NotContains(t, k.String(), "EventKind")
	}
	require.Equal(t, "EventKind(0)", iwarp.EventKind(0).String())
	for s := iwarp.StateIdle; s <= iwarp.StateError; s++ {
		require.NotContains(t, s.String(), "State(")
	}
	require.Equal(t, "State(9)", iwarp.State(9).String())
	for o := iwarp.OpSend; o <= iwarp.OpRecvImm; o++ {
		require.NotContains(t, o.String(), "Op(")
	}
	require.Equal(t, "Op(99)", iwarp.Op(99).String())
}

// TestLogTellsOperators of refused connections and of QPs that ended with an error.
func TestLogTellsOperators(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		s := newSide(t, &iwarp.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		l, err := s.rnic.Listen(testContext(t), "pipe", "", nil)
		require.NoError(t, err)
		defer l.Close()
		c, err := transport.Dial(testContext(t), "pipe", l.Addr().String(), transport.Options{})
		require.NoError(t, err)
		defer c.Close()
		_, err = c.Write([]byte("GET / HTTP/1.1\r\n\r\n......"))
		require.NoError(t, err)
		_, _ = c.Read(make([]byte, 1))
		synctest.Wait()
		require.Contains(t, log.String(), "connection refused during set-up")
		log.Reset()

		p, qp := responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
		p.Send(wiretest.Write(0x77, 0, "x"))
		p.Segment()
		p.Close()
		<-qp.Done()
		require.Equal(t, 1, strings.Count(log.String(), "queue pair ended"))
		require.Contains(t, log.String(), "how=terminated")
		log.Reset()

		p, qp = responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
		p.Close()
		<-qp.Done()
		require.Empty(t, log.String(), "a graceful end is no news")
	})
}

func TestStats(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, server := connect(t, pairConfig{network: "pipe"})
		ctx := testContext(t)
		_, cm := client.register(1<<18, stag.LocalWrite, nil)
		_, sm := server.register(1<<18, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
		_, own := server.register(8, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{QP: server.qp})
		require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{Local: []iwarp.SGE{sm.Slice(0, 99)}}, iwarp.RecvWR{}, iwarp.RecvWR{}, iwarp.RecvWR{}))
		require.NoError(t, client.qp.RDMAWrite(ctx, sm.Advertise(0, 1<<18), cm.Slice(0, 1<<18)))
		require.NoError(t, client.qp.PostSend(
			iwarp.SendWR{Op: iwarp.OpSend, Inline: make([]byte, 99)},
			iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Solicited},
			iwarp.SendWR{Op: iwarp.OpSendInvalidate, Invalidate: own.STag()},
			iwarp.SendWR{Op: iwarp.OpSend}))
		require.NoError(t, client.qp.RDMARead(ctx, cm.Slice(0, 7), sm.Advertise(0, 7)))
		require.NoError(t, client.qp.Close())
		<-server.qp.Done()

		sent, received := client.qp.Stats(), server.qp.Stats()
		want := iwarp.OpStats{
			Send:         iwarp.Traffic{Messages: 4, Octets: 99},
			RDMAWrite:    iwarp.Traffic{Messages: 2, Octets: 1 << 18}, // one is the RTR
			ReadRequest:  iwarp.Traffic{Messages: 1, Octets: 28},
			ReadResponse: iwarp.Traffic{},
		}
		require.Equal(t, want, sent.Sent, "also after the end")
		require.Equal(t, want, received.Received)
		want = iwarp.OpStats{ReadResponse: iwarp.Traffic{Messages: 1, Octets: 7}}
		require.Equal(t, want, sent.Received)
		require.Equal(t, want, received.Sent)
	})
}

func TestStatsOfATerminate(t *testing.T) {
	client, server := connect(t, pairConfig{})
	require.NoError(t, client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Inline: []byte{1}, Remote: remote}))
	<-client.qp.Done()
	<-server.qp.Done()
	require.EqualValues(t, 1, client.qp.Stats().Received.Terminate.Messages)
	require.EqualValues(t, 1, server.qp.Stats().Sent.Terminate.Messages)
	require.Equal(t, client.qp.Stats().Sent.RDMAWrite.Messages-1, server.qp.Stats().Received.RDMAWrite.Messages, "that of the bad one is none")
}

// TestQPKeepsNothingOfSetup when it has been established: an Event that is not read may keep the QP for as long as the RNIC exists.
func TestQPKeepsNothingOfSetup(t *testing.T) {
	gone := make(chan struct{})
	prepare := func() func(context.Context, *iwarp.QP) error {
		memory := new([1 << 16]byte)
		runtime.AddCleanup(memory, func(gone chan struct{}) { close(gone) }, gone)
		return func(context.Context, *iwarp.QP) error {
			memory[0]++
			return nil
		}
	}
	client, _ := connect(t, pairConfig{client: iwarp.QPConfig{Setup: prepare()}})
	require.NoError(t, client.qp.Close())
	require.Eventually(t, func() bool {
		runtime.GC()
		select {
		case <-gone:
			return true
		default:
			return false
		}
	}, 10*time.Second, time.Millisecond)
	require.Len(t, client.rnic.Events(), 1)
	require.NoError(t, client.qp.Err())
}
