package iwarp_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// onlyPath returns the counters of an RNIC whose QPs all have one path.
func (s *side) onlyPath() *counters.Path {
	s.Helper()
	paths := s.rnic.Stats().Paths
	require.Len(s, paths, 1)
	return &paths[0]
}

// TestRNICCountsLiveAndEndedQPs: the counts of a QP stay in the sums when it ends.
func TestRNICCountsLiveAndEndedQPs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, server := newSide(t, nil), newSide(t, nil)
		require.Empty(t, client.rnic.Stats().Paths)
		_, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite, nil)
		_, local := client.register(64, 0, nil)
		var qps []*iwarp.QP
		for range 3 {
			client.connect(server, pairConfig{network: "pipe"})
			require.NoError(t, client.qp.RDMAWrite(testContext(t), mr.Advertise(0, 64), local.Slice(0, 64)))
			qps = append(qps, client.qp)
		}
		synctest.Wait()
		sent := iwarp.Traffic{Messages: 3 + 3, Octets: 3 * 64} // with the RTR of each
		p := client.onlyPath()
		require.Equal(t, "pipe", p.Path)
		require.EqualValues(t, 3, p.Made)
		require.Equal(t, 3, p.Live)
		require.Equal(t, sent, p.Sent.RDMAWrite)
		require.Equal(t, sent.Octets, server.onlyPath().Received.RDMAWrite.Octets)
		require.ElementsMatch(t, qps, slices.Collect(client.rnic.QPs()))

		require.NoError(t, qps[0].Close())
		require.NoError(t, qps[1].Abort())
		synctest.Wait()
		p = client.onlyPath()
		require.EqualValues(t, 3, p.Made)
		require.Equal(t, 1, p.Live)
		require.Equal(t, sent, p.Sent.RDMAWrite, "those of QPs that have ended are there")
		require.Equal(t, counters.Ended{counters.Closed: 1, counters.Aborted: 1}, p.Ended)
		require.Equal(t, qps[2:], slices.Collect(client.rnic.QPs()))
		for range client.rnic.QPs() {
			break
		}
		require.Empty(t, p.Latency, "they are not measured")
	})
}

// TestTerminatesAreCountedByCode: codes that no RFC defines count together, so that a peer cannot make the list longer.
func TestTerminatesAreCountedByCode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		for _, code := range []uint16{0x0102, 0x0102, 0x0ffe, 0x7777, 0x1203} {
			p, qp := responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
			p.Send(wiretest.Terminate(transport.Code(code), wiretest.NoHeader, nil))
			p.Close()
			<-qp.Done()
		}
		p, qp := responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
		p.Send(wiretest.Write(0xbad0, 0, "x"))
		p.WantTerminate("there is no such STag", 0x1100)
		p.Close()
		<-qp.Done()
		require.Equal(t, []counters.Terminate{
			{Type: 1, Code: 2, Known: true, Remote: true, Count: 2},
			{Layer: 1, Type: 1, Known: true, Count: 1},
			{Layer: 1, Type: 2, Code: 3, Known: true, Remote: true, Count: 1},
			{Remote: true, Count: 2},
		}, s.rnic.Stats().Terminates)
		ended := s.onlyPath().Ended
		require.EqualValues(t, 5, ended[counters.TerminateReceived])
		require.EqualValues(t, 1, ended[counters.Terminated])
	})
}

// TestLatencyOfWorkRequests: from PostSend to the completion, for successful requests.
func TestLatencyOfWorkRequests(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, &iwarp.Config{Latency: true})
		for _, d := range []time.Duration{time.Millisecond, 3 * time.Millisecond} {
			k.posts(iwarp.SendWR{Op: iwarp.OpRDMARead, Local: k.at(0, 4), Remote: remote})
			k.p.Segment()
			time.Sleep(d)
			k.answersRead(0, "data")
			k.completes(k.cq, 1)
		}
		k.posts(iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Local: k.at(0, 4)})
		k.p.Segment()
		k.posts(iwarp.SendWR{Op: iwarp.OpRDMARead, Local: k.at(0, 4), Remote: remote})
		synctest.Wait()
		require.Equal(t, 1, k.qp.Stats().SendQueued)
		require.Equal(t, 1, k.onlyPath().SendQueued)
		require.NoError(t, k.qp.Abort())
		latencies := k.onlyPath().Latency
		require.Len(t, latencies, 2, "of operations that have succeeded")
		require.Equal(t, "Send", latencies[0].Op)
		require.EqualValues(t, 1, latencies[0].Counts[0], "virtual time stands still meanwhile")
		read := latencies[1]
		require.Equal(t, "RDMA Read", read.Op)
		require.Equal(t, 4*time.Millisecond, read.Sum)
		for i, n := range read.Counts {
			want := uint64(0)
			for _, d := range []time.Duration{time.Millisecond, 3 * time.Millisecond} {
				if d <= counters.Bound(i) && d > counters.Bound(i-1) {
					want++
				}
			}
			require.Equal(t, want, n, "bucket %d", i)
		}
	})
}

// TestEarlyWorkCountsFromItsPosting: it is posted in QPConfig.Setup.
func TestEarlyWorkCountsFromItsPosting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, server := newSide(t, &iwarp.Config{Latency: true}), newSide(t, nil)
		time.Sleep(time.Minute) // the time before does not count
		client.connect(server, pairConfig{network: "pipe", client: iwarp.QPConfig{
			Setup: func(ctx context.Context, qp *iwarp.QP) error {
				defer time.Sleep(time.Second)
				return qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite})
			},
		}})
		client.completes(client.qp.SendCQ(), 1)
		latencies := client.onlyPath().Latency
		require.Len(t, latencies, 1)
		require.Equal(t, time.Second, latencies[0].Sum)
	})
}

// TestRefusedSetupsAreCounted: on both sides, by their cause.
func TestRefusedSetupsAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, server := newSide(t, nil), newSide(t, nil)
		ctx := testContext(t)
		admit := errors.New("not admitted")
		l, err := server.rnic.Listen(ctx, "pipe", "", &iwarp.ListenConfig{
			SetupTimeout: 3 * time.Second, Admit: func(net.Addr) error { return admit },
		})
		require.NoError(t, err)
		_, err = client.rnic.Dial(ctx, "pipe", l.Addr().String(), &iwarp.QPConfig{PD: client.pd})
		require.Error(t, err)
		require.EqualValues(t, 1, client.rnic.Stats().Failed[counters.CauseConnection])
		refusals := server.rnic.Stats().Refused
		require.EqualValues(t, 2, refusals[counters.CauseNotAdmitted], "the client has tried revision 1, too")

		admit = nil
		go func() {
			cr, err := l.Accept(ctx)
			if err == nil {
				require.Equal(t, 1, server.rnic.Stats().Pending)
				_ = cr.Reject(nil)
			}
		}()
		_, err = client.rnic.Dial(ctx, "pipe", l.Addr().String(), &iwarp.QPConfig{PD: client.pd})
		require.ErrorIs(t, err, iwarp.ErrRejected)
		synctest.Wait()
		require.EqualValues(t, 1, client.rnic.Stats().Failed[counters.CauseRejected])
		require.EqualValues(t, 1, server.rnic.Stats().Refused[counters.CauseRejected])
		require.Zero(t, server.rnic.Stats().Pending)
		require.NoError(t, l.Close())
	})
}

// TestAcceptThatCannotBeginIsNoRejection: it counts as a failure of this side, not as a rejection by the application.
func TestAcceptThatCannotBeginIsNoRejection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, server := newSide(t, nil), newSide(t, nil)
		ctx := testContext(t)
		l, err := server.rnic.Listen(ctx, "pipe", "", nil)
		require.NoError(t, err)
		accepted := make(chan error, 1)
		go func() {
			cr, err := l.Accept(ctx)
			if err == nil {
				_, err = cr.Accept(ctx, &iwarp.QPConfig{PD: server.pd, SendDepth: 1 << 20})
			}
			accepted <- err
		}()
		_, err = client.rnic.Dial(ctx, "pipe", l.Addr().String(), &iwarp.QPConfig{PD: client.pd})
		require.ErrorIs(t, err, iwarp.ErrRejected)
		require.ErrorIs(t, <-accepted, iwarp.ErrLimit)
		require.Equal(t, counters.Setups{counters.CauseOther: 1}, server.rnic.Stats().Refused)
		require.Zero(t, server.rnic.Stats().Pending)
		require.NoError(t, l.Close())
	})
}

// TestClosedConnectionIsCounted: on each side that is given a closed connection.
func TestClosedConnectionIsCounted(t *testing.T) {
	s := newSide(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	closed := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		require.NoError(t, c.Close())
		return c
	}
	_, err = s.rnic.Client(testContext(t), closed(), &iwarp.QPConfig{PD: s.pd})
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = s.rnic.Server(testContext(t), closed(), nil)
	require.ErrorIs(t, err, net.ErrClosed)
	stats := s.rnic.Stats()
	require.Equal(t, 1, int(stats.Failed[counters.CauseConnection]))
	require.Equal(t, 1, int(stats.Refused[counters.CauseConnection]))
}

// TestEventsAndOverflowsAreCounted: in the RNIC's statistics.
func TestEventsAndOverflowsAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		for range iwarp.EventDepth + 3 {
			s.rnic.Raise(iwarp.Event{Kind: iwarp.EventClosed})
		}
		cq, err := s.rnic.CreateCQ(1)
		require.NoError(t, err)
		k := &talk{side: s, cq: cq}
		k.p, k.qp = responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd, SendCQ: cq})
		k.posts(iwarp.SendWR{Op: iwarp.OpSend}, iwarp.SendWR{Op: iwarp.OpSend}, iwarp.SendWR{Op: iwarp.OpSend})
		k.p.Segment()
		k.p.Close()
		<-k.qp.Done()
		stats := s.rnic.Stats()
		require.EqualValues(t, 1, stats.CQOverflows)
		require.GreaterOrEqual(t, stats.EventsDropped, uint64(4), "with that of the overflow")
	})
}

// TestKernelTellsOfTCP: the kernel's counters are available until the end.
func TestKernelTellsOfTCP(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the kernel of Linux")
	}
	for name, plain := range map[string]bool{"raw": false, "plain": true} {
		t.Run(name, func(t *testing.T) {
			client, _ := connect(t, pairConfig{clientR: &iwarp.Config{PlainIO: plain}})
			if wiretest.LLP != nil {
				t.Skip("the connection is not one of TCP")
			}
			require.NoError(t, client.qp.RDMAWrite(testContext(t), iwarp.RemoteBuffer{}))
			tcp, ok := client.qp.TCP()
			require.True(t, ok)
			require.Positive(t, tcp.RTT)
			require.Positive(t, tcp.Window)
			p := client.onlyPath()
			require.Equal(t, 1, p.TCPs)
			require.Positive(t, p.TCP.RTT)
			require.NoError(t, client.qp.Abort())
			_, ok = client.qp.TCP()
			require.False(t, ok)
			require.Zero(t, client.onlyPath().TCPs)
		})
	}
}

// resentLLP is an LLP of TCP that seems to retransmit a segment between any two queries. closing is called before it is
// aborted.
type resentLLP struct {
	transport.LLP
	resent  atomic.Uint64
	gone    atomic.Bool
	closing func()
}

func (l *resentLLP) TCPInfo() (i transport.TCPInfo, ok bool) {
	if l.gone.Load() {
		return i, false
	}
	return transport.TCPInfo{Retransmits: l.resent.Add(1)}, true
}

func (l *resentLLP) Abort(cause error) {
	l.closing()
	l.gone.Store(true)
	l.LLP.Abort(cause)
}

// TestRetransmitsOfAnEndingConnectionDoNotFall: until the connection is closed, there may be more retransmits than when
// its end began.
func TestRetransmitsOfAnEndingConnectionDoNotFall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		a, _ := wiretest.Records(1)(t)
		var told []uint64
		tell := func() { told = append(told, s.onlyPath().TCP.Retransmits) }
		qp := iwarp.Establish(t, s.rnic, &resentLLP{LLP: a, closing: tell}, &iwarp.QPConfig{PD: s.pd}, nil)
		tell()
		require.NoError(t, qp.Abort())
		<-qp.Done()
		tell()
		require.Equal(t, []uint64{1, 3, 3}, told, "2 were so at the beginning of the end")
		tcp, ok := qp.TCP()
		require.Equal(t, iwarp.TCPStats{Retransmits: 3}, tcp)
		require.False(t, ok)
	})
}

func TestPipeHasNoTCP(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		_, qp := responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd, Setup: func(_ context.Context, qp *iwarp.QP) error {
			_, ok := qp.TCP()
			require.False(t, ok, "it is not connected")
			return nil
		}})
		_, ok := qp.TCP()
		require.False(t, ok)
		require.Zero(t, s.onlyPath().TCPs)
	})
}
