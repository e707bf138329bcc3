package iwarp

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

func TestVERBS_89_FullEventChannelDropsTheNewest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		events := s.rnic.Events()
		for range EventDepth {
			s.rnic.Raise(Event{Kind: EventClosed})
		}
		require.Zero(t, s.rnic.EventsDropped())
		_, qp := responder(t, s.rnic, "pipe", &QPConfig{PD: s.pd})
		require.NoError(t, qp.Abort(), "nobody who does not read Events blocks anything")
		require.EqualValues(t, 1, s.rnic.EventsDropped())
		require.NoError(t, s.rnic.Close())
		for range EventDepth {
			require.Equal(t, EventClosed, (<-events).Kind, "the oldest are kept, also behind Close")
		}
		_, open := <-events
		require.False(t, open, "Close ends the channel")
		_, open = <-s.rnic.Events()
		require.False(t, open, "whenever it is asked for")
		require.NoError(t, s.rnic.Close(), "closing again does nothing")
	})
}

func TestNamesOfKindsStatesAndOps(t *testing.T) {
	for k := EventClosed; k <= EventRecvLimit; k++ {
		require.NotContains(t, k.String(), "EventKind")
	}
	require.Equal(t, "EventKind(0)", EventKind(0).String())
	for s := StateIdle; s <= StateError; s++ {
		require.NotContains(t, s.String(), "State(")
	}
	require.Equal(t, "State(9)", State(9).String())
	for o := OpSend; o <= OpBind; o++ {
		require.NotContains(t, o.String(), "Op(")
	}
	require.NotContains(t, OpRecv.String()+OpRecvImm.String(), "Op(")
	require.Equal(t, "Op(99)", Op(99).String())
}

// TestLogTellsOperators: of refused connections and of QPs that ended with an error.
func TestLogTellsOperators(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		s := newSide(t, &Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		l := s.listens(nil)
		p := calls(t, l, []byte("GET / HTTP/1.1\r\n\r\n......"))
		_, _ = p.c.Read(make([]byte, 1))
		synctest.Wait()
		require.Contains(t, log.String(), "connection refused during set-up")
		log.Reset()

		p, qp := responder(t, s.rnic, "pipe", &QPConfig{PD: s.pd})
		p.writes(fpdu(write(0x77, 0, "x")))
		p.segment()
		require.NoError(t, p.c.Close())
		<-qp.Done()
		require.Equal(t, 1, strings.Count(log.String(), "queue pair ended"))
		require.Contains(t, log.String(), "how=terminated")
		log.Reset()

		p, qp = responder(t, s.rnic, "pipe", &QPConfig{PD: s.pd})
		require.NoError(t, p.c.Close())
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
		_, own := server.register(8, stag.LocalWrite|stag.RemoteWrite, &MROptions{QP: server.qp})
		require.NoError(t, server.qp.PostRecv(RecvWR{Local: []SGE{sm.Slice(0, 99)}}, RecvWR{}, RecvWR{}, RecvWR{}))
		require.NoError(t, client.qp.RDMAWrite(ctx, sm.Advertise(0, 1<<18), cm.Slice(0, 1<<18)))
		require.NoError(t, client.qp.PostSend(
			SendWR{Op: OpSend, Inline: make([]byte, 99)},
			SendWR{Op: OpSend, Flags: Solicited},
			SendWR{Op: OpSendInvalidate, Invalidate: own.STag()},
			SendWR{Op: OpSend}))
		require.NoError(t, client.qp.RDMARead(ctx, cm.Slice(0, 7), sm.Advertise(0, 7)))
		require.NoError(t, client.qp.Close())
		<-server.qp.Done()

		sent, received := client.qp.Stats(), server.qp.Stats()
		want := OpStats{
			Send:         Traffic{Messages: 4, Octets: 99},
			RDMAWrite:    Traffic{Messages: 2, Octets: 1 << 18}, // one is the RTR
			ReadRequest:  Traffic{Messages: 1, Octets: 28},
			ReadResponse: Traffic{},
		}
		require.Equal(t, want, sent.Sent, "also after the end")
		require.Equal(t, want, received.Received)
		want = OpStats{ReadResponse: Traffic{Messages: 1, Octets: 7}}
		require.Equal(t, want, sent.Received)
		require.Equal(t, want, received.Sent)
	})
}

func TestStatsOfATerminate(t *testing.T) {
	client, server := connect(t, pairConfig{})
	require.NoError(t, client.qp.PostSend(SendWR{Op: OpRDMAWrite, Inline: []byte{1}, Remote: remote}))
	<-client.qp.Done()
	<-server.qp.Done()
	require.EqualValues(t, 1, client.qp.Stats().Received.Terminate.Messages)
	require.EqualValues(t, 1, server.qp.Stats().Sent.Terminate.Messages)
	require.Zero(t, server.qp.Stats().Received.RDMAWrite.Messages-1, "the RTR was the only whole Write")
}
