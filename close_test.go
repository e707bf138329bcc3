package iwarp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// wantEvent takes the next event, which must be about the QP.
func (s *side) wantEvent(kind iwarp.EventKind) iwarp.Event {
	s.Helper()
	select {
	case e := <-s.rnic.Events():
		require.Equal(s, kind, e.Kind)
		require.Same(s, s.qp, e.QP)
		return e
	case <-time.After(wiretest.Patience):
		require.FailNow(s, "no event", "want %v", kind)
	}
	return iwarp.Event{}
}

// wantAllRefused makes sure that an ended QP refuses everything and says why.
func (s *side) wantAllRefused(cause error) {
	s.Helper()
	ctx := testContext(s.T)
	_, recvErr := s.qp.Recv(ctx, iwarp.SGE{})
	_, readErr := s.qp.Remote(iwarp.RemoteBuffer{Len: 9}).ReadAt(make([]byte, 4), 0)
	_, writeErr := s.qp.Remote(iwarp.RemoteBuffer{Len: 9}).WriteAt(make([]byte, 4), 0)
	for what, err := range map[string]error{
		"PostSend":  s.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}),
		"PostRecv":  s.qp.PostRecv(iwarp.RecvWR{}),
		"Send":      s.qp.Send(ctx),
		"RDMAWrite": s.qp.RDMAWrite(ctx, iwarp.RemoteBuffer{}),
		"RDMARead":  s.qp.RDMARead(ctx, iwarp.SGE{}, iwarp.RemoteBuffer{}),
		"Recv":      recvErr,
		"ReadAt":    readErr,
		"WriteAt":   writeErr,
	} {
		require.ErrorIs(s, err, net.ErrClosed, what)
		if cause != nil {
			require.ErrorIs(s, err, cause, what)
		}
	}
	require.NoError(s, s.qp.Close(), "closing what has ended does nothing")
	require.NoError(s, s.qp.Abort())
}

func TestDDP_54_58_CloseIsGracefulOnBothSides(t *testing.T) {
	for _, network := range []string{"tcp", "pipe"} {
		t.Run(network, func(t *testing.T) {
			client, server := connect(t, pairConfig{network: network})
			_, mr := server.register(8, stag.LocalWrite, nil)
			require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{ID: 1, Local: []iwarp.SGE{mr.Slice(0, 8)}}, iwarp.RecvWR{ID: 2}, iwarp.RecvWR{ID: 3}))
			require.NoError(t, client.qp.PostRecv(iwarp.RecvWR{ID: 4}))
			require.NoError(t, client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("last")}))
			require.NoError(t, client.qp.Close())
			<-server.qp.Done()
			for _, s := range []*side{client, server} {
				require.Equal(t, iwarp.StateIdle, s.qp.State())
				require.NoError(t, s.qp.Err())
				require.Nil(t, s.qp.Terminated())
				require.NoError(t, s.wantEvent(iwarp.EventClosed).Err)
				s.wantAllRefused(nil)
			}
			wcs := server.completes(server.qp.RecvCQ(), 3)
			require.Equal(t, []uint64{1, 2, 3}, ids(wcs))
			require.Equal(t, []iwarp.Status{iwarp.StatusSuccess, iwarp.StatusFlushed, iwarp.StatusFlushed}, statuses(wcs), "what was sent before the end arrives")
			require.ErrorIs(t, wcs[1].Err(), iwarp.ErrFlushed)
			require.Equal(t, []iwarp.Status{iwarp.StatusFlushed}, statuses(client.completes(client.qp.RecvCQ(), 1)))
		})
	}
}

func TestCloseOnBothSidesAtOnce(t *testing.T) {
	for range 20 {
		client, server := connect(t, pairConfig{})
		errs := make(chan error, 2)
		for _, s := range []*side{client, server} {
			go func() { errs <- s.qp.Close() }()
		}
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		require.Equal(t, iwarp.StateIdle, client.qp.State())
		require.Equal(t, iwarp.StateIdle, server.qp.State())
	}
}

// TestDDP_55_CloseFinishesWhatIsQueued: a Read of ours, Sends after it, and a Read of the
// peer; the FIN is after all of them.
func TestDDP_55_CloseFinishesWhatIsQueued(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		copy(k.mem[16:], "peer's")
		k.posts(
			iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: k.at(0, 4), Remote: remote},
			iwarp.SendWR{ID: 2, Op: iwarp.OpSend, Flags: iwarp.ReadFence, Inline: []byte("behind")})
		k.p.Segment()
		closed := make(chan error, 1)
		go func() { closed <- k.qp.Close() }()
		synctest.Wait()
		require.Equal(t, iwarp.StateRTS, k.qp.State(), "Close waits")
		require.ErrorIs(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}), net.ErrClosed, "new work is refused meanwhile")
		require.ErrorIs(t, k.qp.PostRecv(iwarp.RecvWR{}), net.ErrClosed)
		k.p.Send(wiretest.ReadRequest(1, 0x77, 0, 6, k.mr.STag(), 16))
		require.Equal(t, wiretest.ReadResponse(0xc1, 0x77, 0, "peer's"), k.p.Segment(), "the peer is answered still")
		k.answersRead(0, "data")
		require.Equal(t, wiretest.Send(1, 0, "behind"), k.p.Segment())
		k.p.WantEOF("the FIN comes after everything")
		require.Equal(t, iwarp.StateClosing, k.qp.State())
		require.Empty(t, closed, "the peer has not ended its half")
		k.wantCompletions("everything succeeded", 1, 2)
		k.p.Close()
		require.NoError(t, <-closed)
		require.Equal(t, iwarp.StateIdle, k.qp.State())
	})
}

// TestCloseAfterAResponseThatTheNetworkDoesNotAccept: the response to the peer's Read
// left the queue, but the network has not taken it.
func TestCloseAfterAResponseThatTheNetworkDoesNotAccept(t *testing.T) {
	for _, half := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			k := newTalk(t, iwarp.QPConfig{}, nil)
			const n = 600 << 10 // one batch; the pipe holds 64 KiB
			_, mr := k.register(n, stag.RemoteRead, nil)
			k.p.Send(wiretest.ReadRequest(1, 0x77, 0, n, mr.STag(), 0))
			synctest.Wait()
			closed := make(chan error, 1)
			go func() { closed <- k.qp.Close() }()
			synctest.Wait()
			if half { // something else comes in, which makes the reader look
				k.p.Send(wiretest.Write(k.mr.STag(), 0, "x"))
				synctest.Wait()
			}
			require.Equal(t, iwarp.StateRTS, k.qp.State())
			for got := 0; got < n; {
				got += len(k.p.Segment()) - 14
			}
			k.p.WantEOF("the FIN is after the whole response")
			k.p.Close()
			require.NoError(t, <-closed)
		})
	}
}

func TestCloseTimesOut(t *testing.T) {
	for name, k := range map[string]func(t *testing.T) *talk{
		"the peer does not answer a Read": func(t *testing.T) *talk {
			k := newTalk(t, iwarp.QPConfig{}, &iwarp.Config{CloseTimeout: 3 * time.Second})
			k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: k.at(0, 1), Remote: remote}, iwarp.SendWR{ID: 2, Op: iwarp.OpSend, Flags: iwarp.ReadFence})
			return k
		},
		"the peer does not end its half": func(t *testing.T) *talk {
			return newTalk(t, iwarp.QPConfig{}, &iwarp.Config{CloseTimeout: 3 * time.Second})
		},
		"the peer does not read": func(t *testing.T) *talk {
			k := newTalk(t, iwarp.QPConfig{}, &iwarp.Config{CloseTimeout: 3 * time.Second})
			for id := range uint64(100) {
				k.posts(iwarp.SendWR{ID: id, Op: iwarp.OpRDMAWrite, Local: k.at(0, talkMem), Remote: remote})
			}
			return k
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := k(t)
				require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1000}))
				start := time.Now()
				err := k.qp.Close()
				require.Equal(t, 3*time.Second, time.Since(start))
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
				require.Equal(t, iwarp.StateError, k.qp.State())
				require.ErrorIs(t, k.wantEvent(iwarp.EventAborted).Err, os.ErrDeadlineExceeded)
				k.wantAllRefused(os.ErrDeadlineExceeded)
				wcs := make([]iwarp.WC, 256)
				wcs = wcs[:k.cq.Poll(wcs)]
				require.EqualValues(t, 1000, wcs[len(wcs)-1].ID)
				require.Equal(t, iwarp.StatusFlushed, wcs[len(wcs)-1].Status)
			})
		})
	}
}

// TestCloseOfAQPThatHasEnded does nothing, however short its time is.
func TestCloseOfAQPThatHasEnded(t *testing.T) {
	r, err := iwarp.Open(&iwarp.Config{CloseTimeout: 1})
	require.NoError(t, err)
	defer func() {
		require.Eventually(t, func() bool { return r.Close() == nil }, 10*time.Second, time.Millisecond)
	}()
	pd, err := r.AllocPD()
	require.NoError(t, err)
	client := &side{T: t, rnic: r, pd: pd}
	for _, end := range []func() error{
		func() error { return client.qp.Abort() },
		func() error { _ = client.qp.Close(); <-client.qp.Done(); return nil }, // its time is too short
	} {
		client.connect(newSide(t, nil), pairConfig{})
		require.NoError(t, end())
		for range 100 {
			require.NoError(t, client.qp.Close())
		}
	}
}

func TestARCH_37_AbortFlushesInPostOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: k.at(0, 1), Remote: remote})
		for id := range uint64(20) {
			k.posts(iwarp.SendWR{ID: 2 + id, Op: iwarp.OpSend, Flags: iwarp.Unsignaled})
			require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 100 + id}))
		}
		start := time.Now()
		require.NoError(t, k.qp.Abort())
		require.Zero(t, time.Since(start), "it does not wait")
		wcs := k.completes(k.cq, 41)
		for i, wc := range wcs {
			want := uint64(1 + i)
			if i > 20 {
				want = uint64(100 + i - 21)
			}
			require.Equal(t, want, wc.ID, "in post order, unsignaled ones too")
			require.Equal(t, iwarp.StatusFlushed, wc.Status)
			require.ErrorIs(t, wc.Err(), iwarp.ErrFlushed)
			require.ErrorIs(t, wc.Err(), net.ErrClosed)
		}
		require.ErrorIs(t, k.qp.Err(), iwarp.ErrAborted)
		k.wantEvent(iwarp.EventAborted)
		k.wantAllRefused(iwarp.ErrAborted)
		_, err := io.Copy(io.Discard, k.p.Conn)
		require.Error(t, err, "the peer meets a reset, not an end")
	})
}

// TestDDP_61_62_VERBS_39_PeerEndsWithWorkOutstanding: the half that is still open carries the
// Terminate (RFC 5041 section 6.2.2).
func TestDDP_61_62_VERBS_39_PeerEndsWithWorkOutstanding(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: k.at(0, 1), Remote: remote})
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 2}))
		k.p.Segment()
		k.p.CloseWrite()
		k.wantTerminate("bad close: 0/2/07", 0x0207)
		wcs := k.completes(k.cq, 2)
		require.Equal(t, []iwarp.Status{iwarp.StatusFlushed, iwarp.StatusFlushed}, statuses(wcs))
		var te *iwarp.TerminateError
		require.ErrorAs(t, k.qp.Err(), &te)
		require.False(t, te.Remote)
		require.Equal(t, te, k.qp.Terminated())
		require.Equal(t, iwarp.StateError, k.qp.State())
		k.wantEvent(iwarp.EventTerminated)
		k.wantAllRefused(te)
	})
}

// A heldFlusher makes nothing durable before it is let go.
type heldFlusher chan struct{}

func (f heldFlusher) Flush(context.Context, int64, int64) error { <-f; return nil }

// TestVERBS_39_PeerEndsWithARequestUnanswered: the peer's request is not done, and the
// peer is told.
func TestVERBS_39_PeerEndsWithARequestUnanswered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{Commit: &iwarp.CommitOptions{}}, nil)
		held := make(heldFlusher)
		_, mr := k.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: held})
		ask := commit.Request{ID: 1, Regions: []commit.Region{{STag: mr.STag(), Len: 64}}}
		k.p.Send(wiretest.Untagged(0x41, 0x40|byte(commit.OpRequest), 0, 1, 1, 0, string(ask.Append(nil))))
		synctest.Wait()
		sq, irq := k.qp.Unfinished()
		require.Equal(t, []int{0, 1}, []int{sq, irq}, "only a request of the peer is outstanding")
		k.p.CloseWrite()
		synctest.Wait()
		close(held)
		k.wantTerminate("bad close: 0/2/07", 0x0207)
		var te *iwarp.TerminateError
		require.ErrorAs(t, k.qp.Err(), &te)
		require.False(t, te.Remote)
		require.Equal(t, iwarp.StateError, k.qp.State())
		k.wantEvent(iwarp.EventTerminated)
	})
}

// TestPeerEndsAfterItsReads: they are answered in full, and then the end is graceful.
func TestPeerEndsAfterItsReads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		const n = 1 << 20 // the pipe holds 64 KiB
		_, mr := k.register(n, stag.RemoteRead, nil)
		for msn := range uint32(2) {
			k.p.Send(wiretest.ReadRequest(msn+1, 0x77, 0, n, mr.STag(), 0))
		}
		synctest.Wait()
		k.p.CloseWrite()
		for got := 0; got < 2*n; {
			got += len(k.p.Segment()) - 14
		}
		k.p.WantEOF("the FIN is after all of it")
		<-k.qp.Done()
		require.NoError(t, k.qp.Err())
		require.Equal(t, iwarp.StateIdle, k.qp.State())
	})
}

// TestDDP_52_58_VERBS_38_PeerEndsWhenIdle: the peer's FIN with nothing outstanding is answered by
// ours, and nothing is an error.
func TestDDP_52_58_VERBS_38_PeerEndsWhenIdle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1}))
		k.p.CloseWrite()
		k.p.WantEOF("the FIN is answered by ours")
		<-k.qp.Done()
		require.NoError(t, k.qp.Err())
		require.Equal(t, iwarp.StateIdle, k.qp.State())
		require.Equal(t, []iwarp.Status{iwarp.StatusFlushed}, statuses(k.completes(k.cq, 1)))
		k.wantEvent(iwarp.EventClosed)
	})
}

// TestDDP_60_ConnectionEndsWithinAnFPDU: that is no graceful end.
func TestDDP_60_ConnectionEndsWithinAnFPDU(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1}))
		b := wiretest.FPDU(wiretest.Send(1, 0, "hello"))
		k.p.Write(b[:len(b)-1])
		k.p.CloseWrite()
		<-k.qp.Done()
		require.Error(t, k.qp.Err())
		require.ErrorIs(t, k.qp.Err(), io.ErrUnexpectedEOF)
		require.Equal(t, []iwarp.Status{iwarp.StatusFlushed}, statuses(k.completes(k.cq, 1)))
		k.wantEvent(iwarp.EventConnectionLost)
		k.wantAllRefused(io.ErrUnexpectedEOF)
	})
}

func TestDDP_60_61_ConnectionIsReset(t *testing.T) {
	for _, network := range []string{"tcp", "pipe"} {
		t.Run(network, func(t *testing.T) {
			client, server := connect(t, pairConfig{network: network})
			_, mr := client.register(8, stag.LocalWrite, nil)
			require.NoError(t, client.qp.PostRecv(iwarp.RecvWR{ID: 1, Local: []iwarp.SGE{mr.Slice(0, 8)}}))
			require.NoError(t, server.qp.Abort())
			<-client.qp.Done()
			require.Equal(t, iwarp.StateError, client.qp.State())
			require.ErrorIs(t, client.qp.Err(), net.ErrClosed)
			require.Equal(t, []iwarp.Status{iwarp.StatusFlushed}, statuses(client.completes(client.qp.RecvCQ(), 1)))
			client.wantEvent(iwarp.EventConnectionLost)
			server.wantEvent(iwarp.EventAborted)
			client.wantAllRefused(client.qp.Err())
		})
	}
}

// TestRDMAP_78_79_TerminateArrives: though the peer, which finds the error, was sent
// much that it will never read, and the connection is a real one.
func TestRDMAP_78_79_TerminateArrives(t *testing.T) {
	for range 4 {
		client, server := connect(t, pairConfig{})
		const n = 4 << 20
		_, src := client.register(n, 0, nil)
		_, dst := server.register(n, stag.LocalWrite|stag.RemoteWrite, nil)
		bad := dst.Advertise(0, n)
		bad.TO++ // one octet past the end
		wrs := []iwarp.SendWR{{ID: 1, Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{src.Slice(0, n)}, Remote: bad}}
		for range 4 {
			wrs = append(wrs, iwarp.SendWR{ID: 2, Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{src.Slice(0, n)}, Remote: dst.Advertise(0, n)})
		}
		require.NoError(t, client.qp.PostSend(wrs...))
		<-client.qp.Done()
		<-server.qp.Done()
		var te *iwarp.TerminateError
		require.ErrorAs(t, client.qp.Err(), &te, "the reason has arrived")
		require.True(t, te.Remote)
		require.ErrorIs(t, te, iwarp.ErrBounds)
		client.wantEvent(iwarp.EventTerminateReceived)
		require.ErrorAs(t, server.qp.Err(), &te)
		require.False(t, te.Remote)
		server.wantEvent(iwarp.EventTerminated)
	}
}

// TestTerminateOfAPeerThatResets: it closes with input unread, as some do, and so
// resets the connection. What it said before is still found.
func TestTerminateOfAPeerThatResets(t *testing.T) {
	for range 10 {
		s := newSide(t, nil)
		const n = 8 << 20
		_, mr := s.register(n, 0, nil)
		var p *wiretest.Peer
		p, s.qp = responder(t, s.rnic, "tcp", &iwarp.QPConfig{PD: s.pd})
		require.NoError(t, s.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{mr.Slice(0, n)}, Remote: iwarp.RemoteBuffer{Len: n}}))
		bad := p.Segment()
		p.Send(wiretest.Terminate(0x1100, wiretest.DDPHeader, bad))
		p.Close()
		<-s.qp.Done()
		var te *iwarp.TerminateError
		require.ErrorAs(t, s.qp.Err(), &te)
		require.True(t, te.Remote)
		s.wantEvent(iwarp.EventTerminateReceived)
	}
}

// TestRDMAP_80_118_TerminateToAPeerThatDoesNotEnd: the connection is torn down after a
// bounded time.
func TestRDMAP_80_118_TerminateToAPeerThatDoesNotEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.p.Send(wiretest.Write(0x99, 0, "x"))
		start := time.Now()
		k.p.Segment()
		k.p.WantEOF("our half is ended at once")
		require.Zero(t, time.Since(start))
		k.p.Send(wiretest.Write(k.mr.STag(), 0, "x"))
		synctest.Wait()
		require.Equal(t, iwarp.StateTerminate, k.qp.State())
		require.Zero(t, k.mem[0], "what still comes is not placed")
		<-k.qp.Done()
		require.Equal(t, iwarp.PeerEndTime, time.Since(start))
		require.Equal(t, iwarp.StateError, k.qp.State())
		var te *iwarp.TerminateError
		require.ErrorAs(t, k.qp.Err(), &te, "the first cause stays")
	})
}

func TestFirstCauseStays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.p.Send(wiretest.Write(0x99, 0, "x"))
		k.p.Segment()
		require.NoError(t, k.qp.Abort())
		var te *iwarp.TerminateError
		require.ErrorAs(t, k.qp.Err(), &te)
		require.ErrorIs(t, k.qp.Err(), iwarp.ErrInvalidSTag)
		require.NotErrorIs(t, k.qp.Err(), iwarp.ErrAborted)
		k.wantEvent(iwarp.EventTerminated)
		require.Empty(t, k.rnic.Events(), "a QP ends once")
		k.wantAllRefused(iwarp.ErrInvalidSTag)
		require.True(t, errors.Is(k.qp.Send(testContext(t)), te))
	})
}

// TestSetUpThatFailsAsTheQPCloses has failed: a QP that has ended is not returned as an established one.
func TestSetUpThatFailsAsTheQPCloses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, server := connect(t, pairConfig{network: "pipe"})
		require.NoError(t, client.qp.Close())
		require.NoError(t, server.qp.Close())
		require.NoError(t, client.qp.Err(), "it has ended gracefully, before the fault was told")
		err := client.qp.Outcome(&transport.Fault{Code: transport.MPAInsufficientIRD})
		require.ErrorIs(t, err, net.ErrClosed)
		var f *transport.Fault
		require.ErrorAs(t, err, &f)
		require.Equal(t, transport.MPAInsufficientIRD, f.Code)
	})
}

// A stuckConn does not close until it is let.
type stuckConn struct {
	net.Conn
	let chan struct{}
}

func (c stuckConn) Close() error {
	<-c.let
	return c.Conn.Close()
}

// TestRNICCloseIsBoundedWhileAConnectionDoesNotClose: it waits for no function of the program.
func TestRNICCloseIsBoundedWhileAConnectionDoesNotClose(t *testing.T) {
	client, server := newSide(t, &iwarp.Config{CloseTimeout: 100 * time.Millisecond}), newSide(t, nil)
	let := make(chan struct{})
	var others []*iwarp.QP
	for range 4 {
		client.connect(server, pairConfig{network: "pipe"})
		others = append(others, client.qp)
		client.over(server, func() (a, b net.Conn) {
			a, b = transport.Pipe(transport.PipeOptions{})
			return stuckConn{a, let}, b
		})
	}
	closed := make(chan error, 1)
	go func() { closed <- client.rnic.Close() }()
	select {
	case err := <-closed:
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	case <-time.After(10 * time.Second):
		require.Fail(t, "it waits for the Close of the connection")
	}
	for _, qp := range others {
		select {
		case <-qp.Done():
		case <-time.After(10 * time.Second):
			require.Fail(t, "another QP does not end")
		}
	}
	close(let)
	<-client.qp.Done()
}

// TestEndsAreBoundedWhileAConnectionDoesNotClose: of a QP, and of an RNIC that is shut down, with a QP or with a
// request that has no answer yet.
func TestEndsAreBoundedWhileAConnectionDoesNotClose(t *testing.T) {
	const closeTimeout = 3 * time.Second
	for how, c := range map[string]struct {
		end    func(k *side, ctx context.Context) error
		within time.Duration
	}{
		"Abort":     {func(k *side, _ context.Context) error { return k.qp.Abort() }, iwarp.AbortTime},
		"Close":     {func(k *side, _ context.Context) error { return k.qp.Close() }, closeTimeout + iwarp.AbortTime},
		"Terminate": {func(k *side, _ context.Context) error { return k.qp.Terminate() }, iwarp.PeerEndTime + iwarp.AbortTime},
		"Shutdown":  {func(k *side, ctx context.Context) error { return k.rnic.Shutdown(ctx) }, time.Second + closeTimeout},
	} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				client, server := newSide(t, &iwarp.Config{CloseTimeout: closeTimeout}), newSide(t, nil)
				let := make(chan struct{})
				conns := func() (a, b net.Conn) {
					a, b = transport.Pipe(transport.PipeOptions{})
					return stuckConn{a, let}, b
				}
				client.over(server, conns)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if how == "Shutdown" {
					a, b := conns()
					go func() { _, _ = server.rnic.Client(ctx, b, &iwarp.QPConfig{PD: server.pd}) }()
					_, err := client.rnic.Server(ctx, a, nil)
					require.NoError(t, err)
				}
				start := time.Now()
				require.ErrorIs(t, c.end(client, ctx), os.ErrDeadlineExceeded)
				require.LessOrEqual(t, time.Since(start), c.within)
				close(let)
				<-client.qp.Done()
			})
		})
	}
}
