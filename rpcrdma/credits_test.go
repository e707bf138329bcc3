package rpcrdma

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

// TestRPR_4_ReceiveBeforeReply: with as many calls outstanding as there are receives, each reply allows the next call, which
// never waits for its receive.
func TestRPR_4_ReceiveBeforeReply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{Credits: 3})
		call := func() {
			h := c.header()
			c.send(h.Append(nil), rpc(h.XID, 0))
		}
		for range c.conn.cfg.receives() {
			call()
		}
		for range 200 {
			k := c.next()
			xid := k.rpc.XID
			c.reply(k, accepted(xid))
			m := c.recv()
			require.Equal(t, xid, m.header.XID)
			require.EqualValues(t, 3, m.header.Credits, "each reply has the grant")
			call()
		}
		synctest.Wait()
		require.Zero(t, c.conn.qp.Stats().ReceiveWaits)
	})
}

// TestRPR_4_MoreThanGranted: the message waits for a receive, and then the stream ends.
func TestRPR_4_MoreThanGranted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{Credits: 1})
		began := time.Now()
		for range c.conn.cfg.receives() + 1 {
			h := c.header()
			c.send(h.Append(nil), rpc(h.XID, 0))
		}
		require.ErrorIs(t, c.ended(), iwarp.ErrNoReceive)
		require.GreaterOrEqual(t, time.Since(began), 30*time.Second)
		k, err := c.conn.ReadCall(t.Context())
		require.Nil(t, k)
		require.Error(t, err)
	})
}

// TestRPR_4_ASecondReplyWhileTheFirstWaits is refused at once.
func TestRPR_4_ASecondReplyWhileTheFirstWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{Credits: 1})
		h := c.header()
		c.send(h.Append(nil), rpc(h.XID, 0))
		k := c.next()
		o := <-c.conn.idle // the only one
		first := make(chan error, 1)
		go func() { first <- k.Reply(context.Background(), accepted(h.XID)) }()
		synctest.Wait()
		ended, end := context.WithCancel(t.Context())
		end()
		require.ErrorIs(t, k.Reply(ended, accepted(h.XID)), errAnswered)
		c.conn.idle <- o
		require.NoError(t, <-first)
		require.Equal(t, accepted(h.XID), c.recv().body)
	})
}

// TestRPR_4_OneReplyForEachCall on every path: inline, by chunks, errors of the transport, in any order.
func TestRPR_4_OneReplyForEachCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newHost(t, "pipe", Config{}).connect(wire.Private{Send: 4096, Receive: 4096}.Append(nil))
		r := c.exposes(9000, false)
		type kind func(h *wire.Header) (body []byte, taken bool)
		kinds := []kind{
			func(h *wire.Header) ([]byte, bool) { return rpc(h.XID, 0), true },
			func(h *wire.Header) ([]byte, bool) {
				h.Reads = r.reads(wire.CallLen+4, 4000)
				return append(rpc(h.XID, 7), 0, 0, 0x23, 0x28), true
			},
			func(h *wire.Header) ([]byte, bool) {
				h.Reply, h.HasReply = r.chunk(5000), true
				return rpc(h.XID, 5), true
			},
			func(h *wire.Header) ([]byte, bool) { // a chunk that does not fit
				h.Reads = r.reads(400)
				return rpc(h.XID, 7), false
			},
			func(h *wire.Header) ([]byte, bool) { // a wrong length, which is known later
				h.Proc = wire.NoMsg
				h.Reads = append(r.reads(0, 4000)[:1], r.reads(wire.CallLen, 5000)[1])
				return nil, false
			},
		}
		want, answered := make(map[uint32]bool), 0
		for i := range 10 * len(kinds) {
			h := c.header()
			body, taken := kinds[i%len(kinds)](h)
			want[h.XID] = taken
			c.send(h.Append(nil), body)
			if len(want)-answered < 30 {
				continue
			}
			for range 3 {
				k := c.next()
				c.reply(k, accepted(k.rpc.XID), make([]byte, 100))
				answered++
			}
		}
		for range 3*10 - answered {
			k := c.next()
			c.reply(k, accepted(k.rpc.XID), make([]byte, 100))
		}
		for range 10 * len(kinds) {
			m := c.recv()
			taken, ok := want[m.header.XID]
			require.True(t, ok, "one reply for each call")
			delete(want, m.header.XID)
			require.Equal(t, taken, m.header.Proc != wire.Failure)
		}
		require.Empty(t, want)
	})
}

// TestRPR_4_DoneAndFailure: they get no answer, and their receive is posted again. Failure is the same in every version.
func TestRPR_4_DoneAndFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{Credits: 1})
		for i := range 100 {
			h := c.header()
			h.Proc = []wire.Proc{wire.Done, wire.Failure}[i%2]
			c.send(h.Append(nil)[:16])
			synctest.Wait()
			c.send(wire.AppendVersionFailure(nil, h.XID, 2, 1))
			synctest.Wait()
		}
		c.serves()
		require.Zero(t, c.conn.qp.Stats().ReceiveWaits)
		require.EqualValues(t, 1, c.conn.qp.Stats().Sent.Send.Messages)
	})
}

// TestRPR_21_RefusalsThatWaitForMemory of a message: each is sent when there is memory, before other replies get it. Shutdown waits for them.
func TestRPR_21_RefusalsThatWaitForMemory(t *testing.T) {
	for _, ends := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			c := connected(t, Config{Credits: 2})
			var busy []*outgoing
			for range 2 {
				o, err := c.conn.begin(nil, 10)
				require.NoError(t, err)
				busy = append(busy, o)
			}
			const calls = 3
			want := make(map[uint32]bool)
			for range calls {
				h := c.header()
				h.Proc = 9 // there is none
				want[h.XID] = true
				c.send(h.Append(nil))
			}
			ended := make(chan error, 1)
			if synctest.Wait(); ends {
				go func() { ended <- c.conn.Shutdown(within(t)) }()
				synctest.Wait()
			}
			require.Zero(t, c.conn.qp.Stats().Sent.Send.Messages)
			require.Len(t, c.conn.owed, calls)
			for _, o := range busy {
				c.conn.abandon(o)
			}
			for range calls {
				m := c.recv()
				require.Equal(t, wire.Failure, m.header.Proc)
				require.True(t, want[m.header.XID], "one for each call")
				delete(want, m.header.XID)
			}
			if !ends {
				c.serves()
				return
			}
			require.NoError(t, c.ended())
			require.NoError(t, <-ended)
		})
	}
}
