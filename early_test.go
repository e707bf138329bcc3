package iwarp_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// TestVERBS_34_WorkPostedWhileIdleWaits: it is checked and queued. None of it is sent or
// completed before the connection is established, and then all of it, in order.
func TestVERBS_34_WorkPostedWhileIdleWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		mem, mr := s.register(64, stag.LocalWrite, nil)
		inline := []byte("first")
		setup := func(ctx context.Context, qp *iwarp.QP) error {
			require.ErrorIs(t, qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{mr.Slice(60, 5)}}), iwarp.ErrBounds, "what is posted is checked")
			var post *iwarp.PostError
			require.ErrorAs(t, qp.PostSend(
				iwarp.SendWR{ID: 1, Op: iwarp.OpSend, Inline: inline},
				iwarp.SendWR{ID: 2, Op: iwarp.OpRDMARead, Local: []iwarp.SGE{mr.Slice(0, 4)}, Remote: remote},
				iwarp.SendWR{ID: 3, Op: iwarp.OpRDMAWrite, Flags: iwarp.ReadFence, Local: []iwarp.SGE{mr.Slice(0, 4)}, Remote: remote},
				iwarp.SendWR{ID: 4, Op: iwarp.OpSend}), &post)
			require.Equal(t, 3, post.N)
			require.ErrorIs(t, post, iwarp.ErrQueueFull, "the queue is as deep as ever")
			require.ErrorIs(t, qp.Send(ctx), iwarp.ErrNotConnected, "a blocking helper would wait for itself")
			copy(inline, "LATER")
			require.Zero(t, qp.SendCQ().Poll(make([]iwarp.WC, 1)))
			require.Equal(t, iwarp.StateIdle, qp.State())
			return nil
		}
		p, qp := responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd, SendDepth: 3, Setup: setup})
		require.Equal(t, wiretest.Send(1, 0, "first"), p.Segment(), "inline data was copied when it was posted")
		require.Equal(t, wiretest.ReadRequest(1, mr.STag(), 0, 4, remote.STag, remote.TO), p.Segment())
		require.NoError(t, qp.PostRecv(iwarp.RecvWR{}))
		require.ErrorIs(t, qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}), iwarp.ErrQueueFull)
		p.Send(wiretest.ReadResponse(0xc1, mr.STag(), 0, "data"))
		require.Equal(t, wiretest.Write(remote.STag, remote.TO, "data"), p.Segment(), "fences hold")
		require.Equal(t, []uint64{1, 2, 3}, ids(s.completes(qp.SendCQ(), 3)))
		require.Equal(t, "data", string(mem[:4]))
		require.NoError(t, qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}), "and make room as ever")
		require.Equal(t, wiretest.Send(2, 0, ""), p.Segment())
		require.NoError(t, qp.Abort())
	})
}

// TestVERBS_34_36_EarlyWorkKeepsToTheRules: after the ready-to-receive message of an initiator,
// and not before a responder has heard from its initiator. MSNs start at 1.
func TestVERBS_34_36_EarlyWorkKeepsToTheRules(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		posts := func(_ context.Context, qp *iwarp.QP) error { return qp.PostSend(iwarp.SendWR{ID: 1, Op: iwarp.OpSend}) }
		require.NoError(t, s.dialTo(iwarp.QPConfig{Setup: posts}, func(p *wiretest.Peer) {
			p.WantRequest(wiretest.DefaultRequest)
			p.WantIdle("nothing goes out before the Reply has come", time.Second)
			p.Reply("50 02 0004 8010 8010")
			require.Equal(t, wiretest.Write(0, 0, ""), p.Segment(), "the RTR is first")
			require.Equal(t, wiretest.Send(1, 0, ""), p.Segment(), "the Send has MSN 1 all the same")
		}))

		p, qp := initiator(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd, Setup: posts})
		p.WantIdle("the responder waits for the first message", time.Minute)
		p.Send(wiretest.Write(0, 0, ""))
		require.Equal(t, wiretest.Send(1, 0, ""), p.Segment())
		require.Equal(t, []uint64{1}, ids(s.completes(qp.SendCQ(), 1)))
		require.NoError(t, qp.Abort())
	})
}

// TestVERBS_34_44_FailedSetUpFlushes: both queues, in the order of posting, unsignaled work too.
func TestVERBS_34_44_FailedSetUpFlushes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		oops := errors.New("oops")
		cq, err := s.rnic.CreateCQ(2 * iwarp.DefaultDepth)
		require.NoError(t, err)
		posts := func(qp *iwarp.QP) {
			require.NoError(t, qp.PostRecv(iwarp.RecvWR{ID: 4}, iwarp.RecvWR{ID: 5}))
			require.NoError(t, qp.PostSend(iwarp.SendWR{ID: 1, Op: iwarp.OpSend}, iwarp.SendWR{ID: 2, Op: iwarp.OpRDMARead, Flags: iwarp.Unsignaled}, iwarp.SendWR{ID: 3, Op: iwarp.OpSend}))
		}
		var made *iwarp.QP
		for name, dial := range map[string]func() error{
			"Setup fails": func() error {
				return s.dialTo(iwarp.QPConfig{SendCQ: cq, RecvCQ: cq, Setup: func(_ context.Context, qp *iwarp.QP) error {
					made = qp
					posts(qp)
					return oops
				}}, func(p *wiretest.Peer) { p.WantEOF("no Request goes out") })
			},
			"the peer refuses": func() error {
				return s.dialTo(iwarp.QPConfig{SendCQ: cq, RecvCQ: cq, Setup: func(_ context.Context, qp *iwarp.QP) error {
					made = qp
					posts(qp)
					return nil
				}}, func(p *wiretest.Peer) {
					p.WantRequest(wiretest.DefaultRequest)
					p.Reply("70 02 0000")
				})
			},
			"nothing in common": func() error {
				return s.dialTo(iwarp.QPConfig{SendCQ: cq, RecvCQ: cq, Setup: func(_ context.Context, qp *iwarp.QP) error {
					made = qp
					posts(qp)
					return nil
				}}, func(p *wiretest.Peer) {
					p.WantRequest(wiretest.DefaultRequest)
					p.Reply("50 02 0004 8000 0000") // none of the RTR messages that were offered
					require.Equal(t, byte(7), p.Segment()[1]&0xf, "a Terminate instead of what was posted")
				})
			},
		} {
			require.Error(t, dial(), name)
			<-made.Done()
			wcs := s.completes(cq, 5)
			require.Equal(t, []uint64{1, 2, 3, 4, 5}, ids(wcs), name)
			for _, wc := range wcs {
				require.Equal(t, iwarp.StatusFlushed, wc.Status, name)
			}
			require.ErrorIs(t, made.PostSend(iwarp.SendWR{Op: iwarp.OpSend}), made.Err(), name)
			require.Zero(t, cq.Poll(make([]iwarp.WC, 1)), "%s: each completes once", name)
		}
	})
}

// TestRegionOfWorkPostedWhileIdleIsNotClosed before the work has completed.
func TestRegionOfWorkPostedWhileIdleIsNotClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		mem, mr := s.register(4, 0, nil)
		copy(mem, "data")
		closes := func(expectation string) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			require.ErrorIs(t, mr.CloseContext(ctx), context.DeadlineExceeded, expectation)
		}
		p, qp := initiator(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd, Setup: func(_ context.Context, qp *iwarp.QP) error {
			require.NoError(t, qp.PostSend(iwarp.SendWR{ID: 1, Op: iwarp.OpSend, Local: []iwarp.SGE{mr.Slice(0, 4)}}))
			closes("the connection is not there")
			return nil
		}})
		closes("the responder waits for the first message")
		p.Send(wiretest.Write(0, 0, ""))
		require.Equal(t, wiretest.Send(1, 0, "data"), p.Segment())
		require.Equal(t, []uint64{1}, ids(s.completes(qp.SendCQ(), 1)))
		require.NoError(t, mr.Close())
		require.NoError(t, qp.Abort())

		_, mr = s.register(4, 0, nil)
		oops := errors.New("oops")
		require.ErrorIs(t, s.dialTo(iwarp.QPConfig{Setup: func(_ context.Context, qp *iwarp.QP) error {
			require.NoError(t, qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{mr.Slice(0, 4)}}))
			closes("the work has not been flushed")
			return oops
		}}, func(p *wiretest.Peer) { p.WantEOF("no Request goes out") }), oops)
		require.NoError(t, mr.Close(), "it has")
	})
}

// TestVERBS_34_AllKindsOfWorkCanWait: a window is bound, an integer is added to, and the message
// that reports both is sent when the connection is established.
func TestVERBS_34_AllKindsOfWorkCanWait(t *testing.T) {
	client, server := newSide(t, nil), newSide(t, nil)
	mem, mr := client.register(64, stag.LocalWrite|stag.MWBind, nil)
	window, err := client.pd.AllocMW()
	require.NoError(t, err)
	counter, counterMR := server.register(8, stag.LocalWrite|stag.RemoteAtomic, nil)
	_, in := server.register(16, stag.LocalWrite, nil)
	client.connect(server, pairConfig{
		client: iwarp.QPConfig{Setup: func(_ context.Context, qp *iwarp.QP) error {
			unbound := window.STag()
			require.NoError(t, qp.PostSend(
				iwarp.SendWR{ID: 1, Op: iwarp.OpBind, MW: window, Local: []iwarp.SGE{mr.Slice(8, 16)}, Access: stag.RemoteWrite},
				iwarp.SendWR{ID: 2, Op: iwarp.OpFetchAdd, Add: 7, Remote: counterMR.Advertise(0, 8)}))
			require.NotEqual(t, unbound, window.STag(), "the STag to come is known")
			return qp.PostSend(
				iwarp.SendWR{ID: 3, Op: iwarp.OpRDMAWriteImm, Imm: [8]byte{9}},
				iwarp.SendWR{ID: 4, Op: iwarp.OpSend, Flags: iwarp.ReadFence})
		}},
		server: iwarp.QPConfig{Setup: func(_ context.Context, qp *iwarp.QP) error {
			return qp.PostRecv(iwarp.RecvWR{ID: 5}, iwarp.RecvWR{ID: 6, Local: []iwarp.SGE{in.Slice(0, 16)}})
		}},
	})
	require.Equal(t, []uint64{1, 2, 3, 4}, ids(client.completes(client.qp.SendCQ(), 4)))
	wcs := server.completes(server.qp.RecvCQ(), 2)
	require.Equal(t, []iwarp.Op{iwarp.OpRecvImm, iwarp.OpRecv}, []iwarp.Op{wcs[0].Op, wcs[1].Op})
	require.Equal(t, [8]byte{9}, wcs[0].Imm)
	require.EqualValues(t, 7, binary.NativeEndian.Uint64(counter))
	at := iwarp.RemoteBuffer{STag: window.STag(), Len: 16}
	require.NoError(t, server.qp.RDMAWrite(testContext(t), at, in.Slice(0, 16)))
	require.NoError(t, server.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Inline: []byte("window"), Remote: at}, iwarp.SendWR{Op: iwarp.OpRDMARead}))
	server.completes(server.qp.SendCQ(), 2)
	require.Equal(t, "window", string(mem[8:14]))
}

// TestVERBS_34_FallbackKeepsEarlyWork: Dial's second attempt sends what Setup has posted.
func TestVERBS_34_FallbackKeepsEarlyWork(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		sent := make(chan []byte, 1)
		addr := wiretest.Serve(t,
			func(p *wiretest.Peer) { p.WantRequest(wiretest.DefaultRequest) },
			func(p *wiretest.Peer) {
				p.WantRequest("40 01 0000")
				p.Reply("40 01 0000")
				sent <- p.Segment()
			})
		qp, err := s.rnic.Dial(testContext(t), "pipe", addr, &iwarp.QPConfig{PD: s.pd, Setup: func(_ context.Context, qp *iwarp.QP) error {
			return qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("once")})
		}})
		require.NoError(t, err)
		require.Equal(t, wiretest.Send(1, 0, "once"), <-sent)
		synctest.Wait()
		require.NoError(t, qp.Abort())
	})
}

// TestQPWhoseSetUpHasFailed: a program that still has the QP, from Setup for example, is told the cause, and that nothing is left
// to end.
func TestQPWhoseSetUpHasFailed(t *testing.T) {
	s := newSide(t, nil)
	var qp *iwarp.QP
	cause := errors.New("no road")
	_ = s.dialTo(iwarp.QPConfig{Setup: func(_ context.Context, made *iwarp.QP) error {
		qp = made
		return cause
	}}, func(*wiretest.Peer) {})
	<-qp.Done()
	ctx := testContext(t)
	_, doErr := qp.Do(ctx, iwarp.SendWR{Op: iwarp.OpSend})
	_, readErr := qp.Remote(remote).ReadAt(make([]byte, 1), 0)
	_, recvErr := qp.Recv(ctx, iwarp.SGE{})
	for i, err := range []error{
		qp.Send(ctx), doErr, readErr, recvErr, qp.Commit(ctx, remote), qp.CommitRange(ctx, remote.STag, 0, 1), qp.Terminate(),
		qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}), qp.PostRecv(iwarp.RecvWR{}), qp.Err(),
	} {
		require.ErrorIs(t, err, cause, i)
		require.ErrorIs(t, err, net.ErrClosed, i)
	}
	require.NoError(t, qp.Drain(ctx), "nothing is outstanding")
	require.NoError(t, qp.Close(), "it has ended")
	require.NoError(t, qp.Abort())
}

// TestVERBS_34_RecvWhileIdleFails: no message comes before Setup has returned, so that it would wait until its context ends. It leaves
// no receive behind.
func TestVERBS_34_RecvWhileIdleFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		start := time.Now()
		err := s.dialTo(iwarp.QPConfig{RecvDepth: 1, Setup: func(ctx context.Context, qp *iwarp.QP) error {
			_, err := qp.Recv(ctx, iwarp.SGE{})
			require.ErrorIs(t, err, iwarp.ErrNotConnected)
			require.NoError(t, qp.PostRecv(iwarp.RecvWR{}), "the slot is free")
			return err
		}}, func(*wiretest.Peer) {})
		require.ErrorIs(t, err, iwarp.ErrNotConnected)
		require.Zero(t, time.Since(start))
	})
}

// TestCommitWhileIdleIsTooEarly: the error does not say that Commit is not enabled.
func TestCommitWhileIdleIsTooEarly(t *testing.T) {
	s := newSide(t, nil)
	var errs []error
	_ = s.dialTo(iwarp.QPConfig{Commit: &iwarp.CommitOptions{}, Setup: func(ctx context.Context, qp *iwarp.QP) error {
		errs = []error{
			qp.PostSend(iwarp.SendWR{Op: iwarp.OpCommit, Regions: []iwarp.RemoteBuffer{remote}}),
			qp.Commit(ctx, remote), qp.CommitRange(ctx, remote.STag, 0, 1),
		}
		return context.Canceled
	}}, func(*wiretest.Peer) {})
	require.Len(t, errs, 3)
	for i, err := range errs {
		require.ErrorIs(t, err, iwarp.ErrNotConnected, i)
		require.NotErrorIs(t, err, iwarp.ErrUnsupported, i)
	}
}
