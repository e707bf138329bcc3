package iwarp_test

import (
	"context"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// cancels runs a blocking helper that cannot end, and has its context end.
func cancels(t *testing.T, helper func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	require.ErrorIs(t, helper(ctx), context.DeadlineExceeded)
}

// later runs f in a goroutine; result returns what f returned, and fails the test if f has not returned.
func later(t *testing.T, f func() error) (isDone func() bool, result func() error) {
	c := make(chan error, 1)
	go func() { c <- f() }()
	return func() bool {
			synctest.Wait()
			return len(c) > 0
		}, func() error {
			t.Helper()
			synctest.Wait()
			select {
			case err := <-c:
				return err
			default:
				require.FailNow(t, "it has not returned")
				return nil
			}
		}
}

// The usual defer: the helper of an RDMA Read is cancelled, and the region of its sink is
// closed. Close waits for the response, which still has its place, and the QP goes on.
func TestCloseOfARegionWaitsForTheSinkOfACancelledRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		mem, sink := k.register(8, stag.LocalWrite|stag.RemoteWrite, nil)
		cancels(t, func(ctx context.Context) error { return k.qp.RDMARead(ctx, sink.Slice(0, 8), remote) })
		k.p.Segment()
		closed, result := later(t, sink.Close)
		require.False(t, closed(), "the response is still to come")

		require.Error(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{sink.Slice(0, 8)}}), "nothing new may name the region")
		k.p.Send(wiretest.ReadResponse(0xc1, sink.STag(), 0, "response"))
		require.NoError(t, result())
		require.Equal(t, "response", string(mem))
		require.Equal(t, iwarp.StateRTS, k.qp.State())
		require.NoError(t, k.qp.Abort())
	})
}

// While the region is being closed the Read may still write to its sink, but no other operation may.
func TestPeerDoesNotReachARegionThatIsBeingClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		mem, sink := k.register(8, stag.LocalWrite|stag.RemoteWrite, nil)
		cancels(t, func(ctx context.Context) error { return k.qp.RDMARead(ctx, sink.Slice(0, 8), remote) })
		k.p.Segment()
		_, result := later(t, sink.Close)
		synctest.Wait()
		k.p.Send(wiretest.Write(sink.STag(), 0, "intruder"))
		k.wantTerminate("the STag is dead for an RDMA Write", 0x1100)
		require.NoError(t, result(), "the end of the QP ends the Read")
		require.Equal(t, make([]byte, 8), mem)
	})
}

// Work that waits its turn after an RDMA Read is work that was posted: a cancelled helper
// has left it there.
func TestCloseOfARegionWaitsForWorkThatWaitsItsTurn(t *testing.T) {
	for name, post := range map[string]func(ctx context.Context, k *talk, mr *iwarp.MR) error{
		"Send": func(ctx context.Context, k *talk, mr *iwarp.MR) error { return k.qp.Send(ctx, mr.Slice(0, 8)) },
		"RDMA Write": func(ctx context.Context, k *talk, mr *iwarp.MR) error {
			return k.qp.RDMAWrite(ctx, remote, mr.Slice(0, 8))
		},
		"RDMA Read": func(ctx context.Context, k *talk, mr *iwarp.MR) error {
			return k.qp.RDMARead(ctx, mr.Slice(0, 8), remote)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newTalk(t, iwarp.QPConfig{ORD: 1}, nil)
				_, mr := k.register(8, stag.LocalWrite, nil)
				k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead}, iwarp.SendWR{ID: 2, Op: iwarp.OpSend, Flags: iwarp.ReadFence})
				k.p.Segment()
				cancels(t, func(ctx context.Context) error { return post(ctx, k, mr) })
				closed, result := later(t, mr.Close)
				require.False(t, closed(), "it is still queued")
				k.p.Send(wiretest.ReadResponse(0xc1, 0, 0, ""))
				require.Equal(t, wiretest.Send(1, 0, ""), k.p.Segment())
				k.p.Segment()
				if name == "RDMA Read" {
					k.p.Send(wiretest.ReadResponse(0xc1, mr.STag(), 0, "response"))
				}
				require.NoError(t, result())
				require.Equal(t, iwarp.StateRTS, k.qp.State())
				require.NoError(t, k.qp.Abort())
			})
		})
	}
}

// A cancelled Recv leaves its receive. The message that takes it finds no region, and costs
// no more than itself.
func TestMessageForACancelledReceiveWithoutARegion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		mem, mr := k.register(8, stag.LocalWrite, nil)
		cancels(t, func(ctx context.Context) error {
			_, err := k.qp.RecvWC(ctx, mr.Slice(0, 1), mr.Slice(1, 1), mr.Slice(2, 6))
			return err
		})
		require.NoError(t, mr.Close(), "a posted receive is not waited for")
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 2, Local: k.at(0, 8)}))
		k.p.Send(wiretest.Send(1, 0, "lost"))
		k.p.Send(wiretest.Send(2, 0, "found"))
		k.wantCompletions("the next receive takes the next message", 2)
		require.Equal(t, "found", string(k.mem[:5]))
		require.Equal(t, make([]byte, 8), mem)
		require.NoError(t, k.qp.Abort())
	})
}

func TestCloseOfARegionIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, &iwarp.Config{CloseTimeout: 3 * time.Second})
		mem, sink := k.register(8, stag.LocalWrite, nil)
		cancels(t, func(ctx context.Context) error { return k.qp.RDMARead(ctx, sink.Slice(0, 8), remote) })
		k.p.Segment()
		start := time.Now()
		err := sink.Close()
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.ErrorContains(t, err, "work requests or placements are still under way after 3s")
		require.Equal(t, 3*time.Second, time.Since(start))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, sink.CloseContext(ctx), context.DeadlineExceeded)
		require.Equal(t, 4*time.Second, time.Since(start))
		require.ErrorContains(t, k.pd.Close(), "in use", "it counts as registered")

		k.p.Send(wiretest.ReadResponse(0xc1, sink.STag(), 0, "response"))
		synctest.Wait()
		require.Equal(t, "response", string(mem), "the Read goes on all the same")
		require.NoError(t, sink.Close())
		require.NoError(t, sink.Close(), "again")
		require.NoError(t, k.qp.Abort())
	})
}

// What a queued OpRegister, OpBind or OpLocalInvalidate names is closed after it.
func TestCloseWaitsForWhatIsToBeEnabledOrInvalidated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		fast, err := k.pd.AllocMR(8, stag.LocalWrite|stag.RemoteWrite, nil)
		require.NoError(t, err)
		window, err := k.pd.AllocMW()
		require.NoError(t, err)
		_, lent := k.register(8, stag.LocalWrite|stag.MWBind, nil)
		_, other := k.register(8, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{QP: k.qp})
		k.posts(
			iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead},
			iwarp.SendWR{ID: 2, Op: iwarp.OpRegister, Flags: iwarp.ReadFence, MR: fast, Memory: make([]byte, 8), Access: stag.LocalWrite},
			iwarp.SendWR{ID: 3, Op: iwarp.OpBind, MW: window, Local: []iwarp.SGE{lent.Slice(0, 8)}, Access: stag.RemoteWrite},
			iwarp.SendWR{ID: 4, Op: iwarp.OpLocalInvalidate, MR: other},
			iwarp.SendWR{ID: 5, Op: iwarp.OpLocalInvalidate, MW: window})
		k.p.Segment()
		var results []func() error
		for _, c := range []io.Closer{fast, window, other} {
			closed, result := later(t, c.Close)
			require.False(t, closed())
			results = append(results, result)
		}
		k.p.Send(wiretest.ReadResponse(0xc1, 0, 0, ""))
		k.wantCompletions("all of it is done", 1, 2, 3, 4, 5)
		for _, result := range results {
			require.NoError(t, result())
		}
		require.NoError(t, lent.Close())
		require.NoError(t, k.qp.Abort())
	})
}
