package iwarp_test

import (
	"context"
	"encoding/binary"
	"errors"
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
)

// wantNothingPolled makes sure that no completion shows up on a CQ.
func wantNothingPolled(t *testing.T, sides ...*side) {
	t.Helper()
	var none [1]iwarp.WC
	for _, s := range sides {
		require.Zero(t, s.qp.SendCQ().Poll(none[:]))
		require.Zero(t, s.qp.RecvCQ().Poll(none[:]))
	}
}

// TestHelperOfEachOperation: those for which there is no test of their own.
func TestHelperOfEachOperation(t *testing.T) {
	for _, network := range []string{"tcp", "pipe"} {
		t.Run(network, func(t *testing.T) {
			client, server := connect(t, pairConfig{network: network})
			ctx := testContext(t)
			src, srcMR := client.register(64, stag.LocalWrite, nil)
			copy(src, "octets of the client")
			dst, dstMR := server.register(64, lendable|stag.Remote, nil)
			type message struct {
				iwarp.WC
				err error
			}
			messages := make(chan message)
			receives := func(into ...iwarp.SGE) {
				go func() {
					wc, err := server.qp.RecvWC(ctx, into...)
					messages <- message{wc, err}
				}()
			}
			next := func(op iwarp.Op) iwarp.WC {
				t.Helper()
				m := <-messages
				require.NoError(t, m.err)
				require.Equal(t, op, m.Op)
				return m.WC
			}

			receives()
			require.NoError(t, client.qp.SendImmediate(ctx, [8]byte{1, 2, 3}))
			require.Equal(t, [8]byte{1, 2, 3}, next(iwarp.OpRecvImm).Imm)

			receives()
			require.NoError(t, client.qp.RDMAWriteImm(ctx, dstMR.Advertise(0, 20), [8]byte{4}, srcMR.Slice(0, 20)))
			require.Equal(t, [8]byte{4}, next(iwarp.OpRecvImm).Imm)
			require.Equal(t, src[:20], dst[:20], "the message is after the octets")

			binary.NativeEndian.PutUint64(dst[24:], 7)
			old, err := client.qp.Swap(ctx, dstMR.Advertise(24, 8), 8)
			require.NoError(t, err)
			require.EqualValues(t, 7, old)
			old, err = client.qp.Swap(ctx, dstMR.Advertise(24, 8), 9)
			require.NoError(t, err)
			require.EqualValues(t, 8, old)

			mw, err := server.pd.AllocMW()
			require.NoError(t, err)
			require.NoError(t, server.qp.Bind(ctx, mw, dstMR.Slice(32, 16), stag.RemoteWrite))
			lent := mw.Advertise(0, 16)
			require.EqualValues(t, 16, lent.Len)
			require.Zero(t, lent.TO)
			require.NoError(t, client.qp.RDMAWrite(ctx, lent, srcMR.Slice(0, 16)))
			receives(dstMR.Slice(48, 8))
			require.NoError(t, client.qp.SendInvalidate(ctx, lent.STag, srcMR.Slice(0, 3)))
			wc := next(iwarp.OpRecv)
			require.Equal(t, lent.STag, wc.STag)
			require.EqualValues(t, 3, wc.Len)
			require.Equal(t, src[:16], dst[32:48])
			require.False(t, mw.Valid(), "the window was given back")

			require.NoError(t, server.qp.Bind(ctx, mw, dstMR.Slice(32, 16), stag.RemoteWrite))
			require.NoError(t, server.qp.LocalInvalidate(ctx, mw.STag()))
			require.False(t, mw.Valid())

			sink, err := client.pd.AllocMR(20, stag.LocalWrite, &iwarp.MROptions{QP: client.qp})
			require.NoError(t, err)
			memory := make([]byte, 20)
			require.NoError(t, client.qp.Register(ctx, sink, memory, stag.LocalWrite))
			require.NoError(t, client.qp.RDMAReadInvalidate(ctx, sink.Slice(0, 20), dstMR.Advertise(0, 20)))
			require.Equal(t, src[:20], memory)
			require.False(t, sink.Valid(), "the sink was invalidated")
			wantNothingPolled(t, client, server)
		})
	}
}

func TestDoAListOfWork(t *testing.T) {
	client, server := connect(t, pairConfig{client: iwarp.QPConfig{SendDepth: 4}})
	ctx := testContext(t)
	src, srcMR := client.register(1000, stag.LocalWrite, nil)
	fillRandom(src)
	dst, dstMR := server.register(1008, stag.LocalWrite|stag.Remote, nil)
	var wrs []iwarp.SendWR
	for i := range 100 { // more than the queue takes
		wrs = append(wrs, iwarp.SendWR{ID: uint64(i), Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Local: []iwarp.SGE{srcMR.Slice(10*i, 10)}, Remote: dstMR.Advertise(10*i, 10)})
	}
	wrs = append(wrs, iwarp.SendWR{ID: 100, Op: iwarp.OpFetchAdd, Remote: dstMR.Advertise(1000, 8), Add: 5}, iwarp.SendWR{ID: 101, Op: iwarp.OpFetchAdd, Remote: dstMR.Advertise(1000, 8), Add: 5})
	wcs, err := client.qp.Do(ctx, wrs...)
	require.NoError(t, err)
	require.Len(t, wcs, len(wrs))
	for i, wc := range wcs {
		require.EqualValues(t, i, wc.ID)
		require.Equal(t, wrs[i].Op, wc.Op)
		require.Equal(t, iwarp.StatusSuccess, wc.Status)
		require.Same(t, client.qp, wc.QP)
	}
	require.EqualValues(t, 0, wcs[100].Old)
	require.EqualValues(t, 5, wcs[101].Old)
	require.Equal(t, src, dst[:1000], "the answer of an atomic operation is after the Writes")
	wantNothingPolled(t, client)
	require.Zero(t, client.qp.Slots())

	wcs, err = client.qp.Do(ctx)
	require.NoError(t, err, "of nothing")
	require.Empty(t, wcs)
}

// failsAt requires the error of a list whose request n is the first that did not succeed.
func failsAt(t *testing.T, err error, n int, cause error) {
	t.Helper()
	var list *iwarp.ListError
	require.ErrorAs(t, err, &list)
	require.Equal(t, n, list.N)
	require.ErrorIs(t, err, cause)
}

// TestDoTellsWhichFailed: the first, in each way in which one can fail.
func TestDoTellsWhichFailed(t *testing.T) {
	t.Run("it cannot be posted", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			k := newTalk(t, iwarp.QPConfig{}, nil)
			wcs, err := k.qp.Do(testContext(t), iwarp.SendWR{Op: iwarp.OpSend}, iwarp.SendWR{Op: iwarp.OpSend}, iwarp.SendWR{Op: iwarp.OpSend, Local: k.at(talkMem, 1)}, iwarp.SendWR{Op: iwarp.OpSend})
			failsAt(t, err, 2, iwarp.ErrBounds)
			require.EqualError(t, err, "iwarp: work request 2 of the list: SGE 0: outside the bounds of the region: 1 octets at 4096 of 4096")
			require.Len(t, wcs, 2, "those before it were done")
			for msn := range uint32(2) {
				require.Equal(t, wiretest.Send(msn+1, 0, ""), k.p.Segment())
			}
			require.NoError(t, k.qp.Send(testContext(t)), "the QP goes on")
			require.Equal(t, wiretest.Send(3, 0, ""), k.p.Segment(), "the one after it was not posted")
			require.NoError(t, k.qp.Abort())
		})
	})
	t.Run("the peer refuses it", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			k := newTalk(t, iwarp.QPConfig{}, nil)
			type outcome struct {
				wcs []iwarp.WC
				err error
			}
			done := make(chan outcome)
			go func() {
				wcs, err := k.qp.Do(testContext(t), iwarp.SendWR{Op: iwarp.OpSend},
					iwarp.SendWR{Op: iwarp.OpRDMARead, Local: k.at(0, 4), Remote: remote}, iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.ReadFence})
				done <- outcome{wcs, err}
			}()
			k.p.Segment()
			asked := k.p.Segment()
			k.p.Send(wiretest.Terminate(0x0101, wiretest.ReadHeader, asked))
			o := <-done
			failsAt(t, o.err, 1, iwarp.ErrBounds)
			require.ErrorIs(t, o.err, net.ErrClosed)
			require.Equal(t, []iwarp.Status{iwarp.StatusSuccess, iwarp.StatusRemoteAccess, iwarp.StatusFlushed}, statuses(o.wcs))
			_, err := k.qp.Do(testContext(t), iwarp.SendWR{Op: iwarp.OpSend})
			failsAt(t, err, 0, net.ErrClosed)
		})
	})
	t.Run("the context ends", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			k := newTalk(t, iwarp.QPConfig{SendDepth: 2}, nil)
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			read := iwarp.SendWR{Op: iwarp.OpRDMARead, Local: k.at(0, 4), Remote: remote}
			wcs, err := k.qp.Do(ctx, iwarp.SendWR{Op: iwarp.OpSend}, read, read, read)
			failsAt(t, err, 1, context.DeadlineExceeded)
			require.Len(t, wcs, 1)
			k.p.Segment()
			for range 2 {
				k.p.Segment()
				k.answersRead(0, "late")
			}
			synctest.Wait()
			sq, _ := k.qp.Unfinished()
			require.Zero(t, sq, "what was posted is done, and the fourth never was")
			k.wantNoCompletion("not on the user's CQ")
			require.Zero(t, k.qp.Slots(), "its slots are free")
			require.NoError(t, k.qp.Abort())
		})
	})
	t.Run("the queue is full of completions that are not polled", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			k := newTalk(t, iwarp.QPConfig{SendDepth: 1}, nil)
			k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpSend})
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			wcs, err := k.qp.Do(ctx, iwarp.SendWR{Op: iwarp.OpSend})
			failsAt(t, err, 0, context.DeadlineExceeded)
			require.Empty(t, wcs)
			k.wantCompletions("the one of the user", 1)
			_, err = k.qp.Do(testContext(t), iwarp.SendWR{Op: iwarp.OpSend})
			require.NoError(t, err)
			require.NoError(t, k.qp.Abort())
		})
	})
	t.Run("in Setup", func(t *testing.T) {
		s := newSide(t, nil)
		_, err := s.rnic.Dial(testContext(t), "pipe", wiretest.Serve(t, func(p *wiretest.Peer) {}), &iwarp.QPConfig{PD: s.pd, Setup: func(ctx context.Context, qp *iwarp.QP) error {
			_, err := qp.Do(ctx, iwarp.SendWR{Op: iwarp.OpSend})
			failsAt(t, err, 0, iwarp.ErrNotConnected)
			return os.ErrInvalid
		}})
		require.ErrorIs(t, err, os.ErrInvalid)
	})
	t.Run("a Commit fails", func(t *testing.T) {
		client, server := committers(t)
		broken := errors.New("no disk")
		_, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, &iwarp.MROptions{Durable: new(medium), Integrity: func(int64, int64) error { return broken }})
		wcs, err := client.qp.Do(testContext(t), iwarp.SendWR{Op: iwarp.OpCommit, Regions: []iwarp.RemoteBuffer{mr.Advertise(0, 8)}}, iwarp.SendWR{Op: iwarp.OpRDMARead})
		var failed *commit.Error
		require.ErrorAs(t, err, &failed)
		failsAt(t, err, 0, failed)
		require.Equal(t, []iwarp.Status{iwarp.StatusRemoteOp, iwarp.StatusSuccess}, statuses(wcs), "the QP goes on, and so does the list")
	})
}
