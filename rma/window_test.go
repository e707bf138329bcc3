package rma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
	"github.com/goiwarp/iwarp/solicit"
	"github.com/goiwarp/iwarp/stag"
)

func fixed(t *testing.T, n int64) *Solicitor {
	t.Helper()
	s, err := NewSolicitor(solicit.Config{Fixed: n})
	require.NoError(t, err)
	return s
}

// asksToWrite sends a WRITE_REQ.
func (r *raw) asksToWrite(id op.ID, n int) {
	r.Helper()
	q := wire.WriteReq{Region: regionID, Epoch: 1, Length: uint32(n)}
	r.sends(q.Append(nil, r.header(id), r.out, r.sealer(regionkey.Write, regionkey.Initiator)))
}

// TestRMA_16_17_PullNeedsAGrant: of the server's window. Writes beyond the depth of the queue, or that wait too
// long, are refused.
func TestRMA_16_17_PullNeedsAGrant(t *testing.T) {
	bubble(t, func(t *testing.T) {
		window := fixed(t, 4112) // one operation of the greatest length
		w, r := plays(t, plan{server: ServerConfig{Solicitor: window, QueueDepth: 2, Dispatch: [2]time.Duration{50 * time.Millisecond, 0}}})
		pull := r.pulls(2, 4096)
		begun := time.Now()
		r.asksToWrite(3, 4096)
		r.asksToWrite(4, 4096)
		r.asksToWrite(5, 4096)
		m := r.wantStatus(op.NACK, op.QueueFull)
		require.EqualValues(t, regionID, m.Region)
		require.Zero(t, time.Since(begun), "at once")
		r.answers(2, pull, octets(1, 4096), regionkey.AAD{Salt: pull.Salt}, nil)
		r.receives(wire.TypeWriteDone)
		pull = wire.Pull{}
		msg := r.receives(wire.TypePull)
		require.NoError(t, pull.Parse(msg, 1))
		require.EqualValues(t, 3, id(msg), "in the order in which they have come")
		require.EqualValues(t, 4112, window.Stats().Granted)
		r.wantStatus(op.NACK, op.NoWindow)
		require.Equal(t, 50*time.Millisecond, time.Since(begun))
		r.answers(3, pull, octets(2, 4096), regionkey.AAD{Salt: pull.Salt, DataCtr: 1}, nil)
		r.receives(wire.TypeWriteDone)
		require.EqualValues(t, 4112, window.Stats().MaxGranted)
		require.EqualValues(t, 2, w.server.Stats().Nacks)
		r.ends(w)
	})
}

// TestAnEndedConnectionLeavesTheQueue: even if writes may wait there without a limit.
func TestAnEndedConnectionLeavesTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		window := fixed(t, 4112)
		w, r := plays(t, plan{server: ServerConfig{Solicitor: window, Dispatch: [2]time.Duration{-1, -1}}})
		other := w.another()
		other.serve()
		s := newRaw(other)
		s.greets()
		s.opens(1, regionID, wire.OpWrite)
		pull := r.pulls(2, 4096)
		s.asksToWrite(2, 4096)
		synctest.Wait()
		require.Equal(t, 1, window.Stats().Queued)
		require.NoError(t, s.qp.Close())
		require.NoError(t, <-other.served)
		require.Zero(t, window.Stats().Queued)
		r.answers(2, pull, octets(1, 4096), regionkey.AAD{Salt: pull.Salt}, nil)
		r.receives(wire.TypeWriteDone)
		require.Zero(t, window.Stats().Granted)
		r.ends(w)
	})
}

// TestRMA_17_QueueIsThatOfAllConnections: a connection with nothing in the queue is refused because of the others.
func TestRMA_17_QueueIsThatOfAllConnections(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := plays(t, plan{server: ServerConfig{Solicitor: fixed(t, 4112), QueueDepth: 1}})
		other := w.another()
		other.serve()
		s := newRaw(other)
		s.greets()
		s.opens(1, regionID, wire.OpWrite)
		r.pulls(2, 4096)
		r.asksToWrite(3, 4096)
		synctest.Wait()
		s.asksToWrite(2, 4096)
		refusal := s.wantStatus(op.NACK, op.QueueFull)
		require.Equal(t, w.server.cfg.Dispatch[op.Latency], refusal.RetryAfter, "a hint when to try again")
		r.wantStatus(op.NACK, op.NoWindow)
		s.asksToWrite(3, 4096)
		s.wantStatus(op.NACK, op.NoWindow)
		require.NoError(t, s.qp.Close())
		require.NoError(t, <-other.served)
		r.ends(w)
	})
}

// TestRMA_20_LateBlobIsDropped: the server copies before Ts, and not at Ts. The sink may receive data until
// the end of Linger.
func TestRMA_20_LateBlobIsDropped(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		done  bool
	}{"in time": {500*time.Millisecond - 1, true}, "at Ts": {500 * time.Millisecond, false}, "in Linger": {700 * time.Millisecond, false}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, r := plays(t, plan{})
				pull := r.pulls(2, 16)
				time.Sleep(c.after)
				r.answers(2, pull, octets(1, 16), regionkey.AAD{Salt: pull.Salt}, nil)
				synctest.Wait()
				want := make([]byte, 16)
				if c.done {
					want = octets(1, 16)
					r.receives(wire.TypeWriteDone)
				}
				w.mem.View(func(b []byte) { require.Equal(t, want, b[:16]) })
				require.Zero(t, w.server.solicitor.Stats().Granted)
				require.Equal(t, !c.done, w.server.Stats().Late == 1, "it is counted")
				r.opens(3, regionID, wire.OpRead)
				r.ends(w)
			})
		})
	}
	t.Run("after Linger", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w, r := plays(t, plan{})
			pull := r.pulls(2, 16)
			time.Sleep(751 * time.Millisecond)
			require.Zero(t, w.server.solicitor.Stats().Granted)
			to := iwarp.RemoteBuffer{STag: stag.STag(pull.SinkSTag), TO: pull.SinkTO, Len: 16}
			_ = r.qp.RDMAWrite(r.context(), to, r.mr.Slice(0, 16))
			require.Error(t, <-w.served, "the STag is invalid")
			w.served = nil
			w.wantNothingLeft()
		})
	})
}

// TestRMA_19_20_TimeIsLookedAtWhenTheMemoryIsFree: a program locks clients out of the Memory for longer than Ts.
// Their octets are not copied once their writes have failed. In real time, because the time of a bubble stands
// still while a goroutine waits for a lock.
func TestRMA_19_20_TimeIsLookedAtWhenTheMemoryIsFree(t *testing.T) {
	w := start(t, plan{
		server: ServerConfig{PullTimeout: 500 * time.Millisecond, Guard: 20 * time.Millisecond, Linger: 10 * time.Second},
		client: ClientConfig{OpTimeout: 20 * time.Second},
	})
	h, p := w.opens(), w.portal(1)
	held, release, updated := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(updated)
		w.mem.Update(func([]byte) { close(held); <-release })
	}()
	<-held
	end := does(t, p, Command{Op: Write, Handle: h, Buf: octets(1, 16)})
	close(release)
	<-updated
	require.ErrorIs(t, end.Err, ErrTimeout)
	require.Eventually(t, func() bool {
		s := w.server.Stats()
		return s.Late+s.LateCommits == 1
	}, 20*time.Second, time.Millisecond)
	w.mem.View(func(b []byte) { require.Equal(t, make([]byte, 16), b[:16]) })
	require.Zero(t, w.server.Stats().LateCommits)
}

// TestRMA_11_WindowOfAClient: the octets of reads in flight never exceed its window.
func TestRMA_11_WindowOfAClient(t *testing.T) {
	bubble(t, func(t *testing.T) {
		window := fixed(t, 3*4112)
		w := start(t, plan{client: ClientConfig{Solicitor: window, Dispatch: [2]time.Duration{-1, -1}}})
		h, p := w.opens(), w.portal(64)
		for range 64 {
			posts(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 4096)})
		}
		for range 64 {
			require.NoError(t, p.ended(t).Err)
		}
		require.EqualValues(t, 3*4112, window.Stats().MaxGranted)
		require.Zero(t, window.Stats().Granted)
	})
}

// TestRMA_26_DispatchTimeout: nothing was sent, and the timeout is exact.
func TestRMA_26_DispatchTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r, h, p := asks(t, plan{client: ClientConfig{Solicitor: fixed(t, 64), Dispatch: [2]time.Duration{30 * time.Millisecond, 0}}}, 0)
		posts(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 16)})
		msg := r.receives(wire.TypeReadReq)
		begun := time.Now()
		posts(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 16)})
		end := p.ended(t)
		require.ErrorIs(t, end.Err, ErrDispatchTimeout)
		require.Equal(t, []time.Duration{30 * time.Millisecond, 30 * time.Millisecond}, []time.Duration{time.Since(begun), end.Total})
		var e *OpError
		require.ErrorAs(t, end.Err, &e)
		require.True(t, e.Timeout())
		require.True(t, e.Outcome.NoEffect())
		posts(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 4096)})
		require.ErrorIs(t, p.ended(t).Err, ErrDispatchTimeout, "larger than the window can be")
		window := w.client.c.solicitor.Stats()
		require.Equal(t, []uint64{1, 1, 0}, []uint64{window.Cancelled, window.TooLarge, window.Expired}, "as docs/flow-control.md and docs/metrics.md say")
		r.serves(msg, octets(1, 16), nil)
		require.NoError(t, p.ended(t).Err)
		require.EqualValues(t, 1, w.qps[0].Stats().Sent.Send.Messages-2-1, "HELLO, OPEN_REQ and the first RTR besides")
		w.close()
	})
}

// TestRMA_42_ScratchIsBounded: without memory a read is not sent.
func TestRMA_42_ScratchIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{client: ClientConfig{ScratchLimit: 2 * 4112}})
		h, p := w.opens(), w.portal(16)
		stuck := w.stall()
		for range 4 {
			posts(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 4096)})
		}
		stuck.wait()
		for range 2 {
			err := p.ended(t).Err
			require.ErrorIs(t, err, ErrDispatchTimeout)
			require.ErrorContains(t, err, "see ScratchLimit")
		}
		stuck.release()
		for range 2 {
			require.NoError(t, p.ended(t).Err)
		}
	})
}

// TestRMA_42_WritesBeyondTheScratchAreRefused: a client has as many outstanding writes as the server has memory for.
func TestRMA_42_WritesBeyondTheScratchAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const room = 3
		w, r := plays(t, plan{server: ServerConfig{ScratchLimit: room * (4096 + regionkey.TagSize)}})
		for i := range op.ID(room) {
			r.asksToWrite(2+i, 4096)
			r.receives(wire.TypePull)
		}
		for i := range op.ID(2) {
			r.asksToWrite(2+room+i, 4096)
			r.wantStatus(op.NACK, op.QueueFull)
		}
		require.Equal(t, room*(4096+regionkey.TagSize), w.server.Stats().ScratchInUse)
		require.NoError(t, r.qp.Abort())
		require.Error(t, <-w.served)
		require.Zero(t, w.server.Stats().ScratchInUse)
	})
}

// TestRMA_42_AllOfTheScratchIsUsed: a Server with memory for one operation serves one operation of any kind at a time.
func TestRMA_42_AllOfTheScratchIsUsed(t *testing.T) {
	for name, p := range suites() {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p.server.ScratchLimit = 4112
				w := start(t, p)
				h, portal := w.opens(), w.portal(1)
				for i := range 6 {
					require.NoError(t, does(t, portal, Command{Op: []Op{Read, Write}[i%2], Handle: h, Buf: make([]byte, 4096)}).Err)
					synctest.Wait() // the server knows that its answer was sent
					require.LessOrEqual(t, w.server.Stats().ScratchInUse, 4112)
				}
			})
		})
	}
}

// TestRMA_42_IdleConnectionsLeaveMemoryForOthers: each has used some, for reads and writes, and has no outstanding operations.
func TestRMA_42_IdleConnectionsLeaveMemoryForOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const limit = 4 * blobStep * 4112
		w := start(t, plan{server: ServerConfig{ScratchLimit: limit}})
		for range 12 {
			o := w.another()
			o.serve()
			var err error
			o.client, err = NewClient(o.context(), o.qps[0], &o.plan.client)
			require.NoError(t, err)
			h, p := o.opens(), o.portal(8)
			for range 3 {
				for range 4 {
					posts(t, p, Command{Op: Write, Handle: h, Buf: octets(1, 4096)})
					posts(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 4096)})
				}
				for range 8 {
					require.NoError(t, p.ended(t).Err)
				}
			}
			require.LessOrEqual(t, w.server.Stats().ScratchInUse, limit)
			synctest.Wait()
			used := 0
			for c := range w.server.conns {
				used += c.leases.taken + c.blobs.taken
			}
			require.Equal(t, used, w.server.Stats().ScratchInUse, "each connection knows what it has")
			t.Cleanup(func() {
				require.NoError(t, o.client.Close())
				require.NoError(t, <-o.served)
			})
		}
	})
}

func TestSolicitorConfig(t *testing.T) {
	_, err := NewSolicitor(solicit.Config{Dispatch: [2]time.Duration{1, 0}})
	require.Error(t, err)
	_, err = NewSolicitor(solicit.Config{Fixed: -1})
	require.Error(t, err)
}
