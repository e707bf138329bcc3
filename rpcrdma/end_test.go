package rpcrdma

import (
	"context"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
	"github.com/goiwarp/iwarp/solicit"
)

// TestRPR_21_TheRNICEnds below a listener: Accept ends, so that a server does.
func TestRPR_21_TheRNICEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rnic, err := iwarp.Open(nil)
		require.NoError(t, err)
		inner, err := rnic.Listen(t.Context(), "pipe", "", nil)
		require.NoError(t, err)
		l := NewListener(inner, &Config{RNIC: rnic})
		served := make(chan error, 1)
		go func() { served <- echo(l) }()
		require.NoError(t, rnic.Close())
		select {
		case err := <-served:
			require.ErrorIs(t, err, net.ErrClosed)
		case <-time.After(time.Hour):
			t.Error("Accept ends")
		}
		_ = l.Close()
	})
}

// TestRPR_15_TheWindowOfASolicitor: a Read that the window does not admit in time is not sent. Its QP could go on, but the call cannot
// be completed, so the connection ends, and the client repeats the call on the next one.
func TestRPR_15_TheWindowOfASolicitor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := iwarp.NewSolicitor(solicit.Config{Fixed: 100_000, Dispatch: [2]time.Duration{time.Second, time.Second}})
		h := newHost(t, "pipe", Config{QP: iwarp.QPConfig{Solicitor: s}})
		slow, c := h.connect(linux), h.connect(linux)
		r, release := slow.stuck(100_000) // all of the window
		hd := slow.header()
		hd.Proc, hd.Reads = wire.NoMsg, r.reads(0)
		slow.send(hd.Append(nil))
		synctest.Wait()
		own := c.exposes(5000, false)
		hd = c.header()
		hd.Proc, hd.Reads = wire.NoMsg, own.reads(0)
		c.send(hd.Append(nil))
		select {
		case <-c.conn.Done():
		case <-time.After(time.Hour):
			t.Error("the connection ends")
		}
		require.ErrorIs(t, c.conn.Err(), iwarp.ErrDispatchTimeout)
		require.NoError(t, slow.conn.Err(), "the other one does not")
		release()
		_ = slow.qp.Abort()
		_ = c.qp.Abort()
		<-slow.conn.Done()
		<-c.conn.Done()
		require.NoError(t, s.Close())
	})
}

// TestRPR_6_AWindowSmallerThanACall: the octets come in pieces that the window of a Solicitor admits.
func TestRPR_6_AWindowSmallerThanACall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := iwarp.NewSolicitor(solicit.Config{Fixed: 10_000})
		c := newHost(t, "pipe", Config{QP: iwarp.QPConfig{Solicitor: s}}).connect(linux)
		for _, n := range []int{10_000, 10_004, 100_000, 1 << 20} {
			h := c.header()
			call := rpc(h.XID, 0, octets(1, n-wire.CallLen)...)
			r := c.exposes(n, true)
			copy(r.mem, call)
			h.Proc, h.Reads = wire.NoMsg, r.reads(0, n/2&^3)
			c.send(h.Append(nil))
			k := c.next()
			require.Equal(t, call, k.Message())
			c.reply(k, accepted(h.XID))
			require.Equal(t, accepted(h.XID), c.recv().body)
		}
		_ = c.qp.Abort()
		<-c.conn.Done()
		require.NoError(t, s.Close())
	})
}

// TestRPR_21_CloseSendsWhatWaitsForTheSendQueue: replies that were given, although the send queue was full.
func TestRPR_21_CloseSendsWhatWaitsForTheSendQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const calls, segments, each = 20, 200, 1000
		private := wire.Private{Send: 4096, Receive: 4096}.Append(nil) // no Send with Invalidate
		c := newHost(t, "pipe", Config{}).connect(private, noReceives)
		r := c.exposes(segments*each, false)
		var chunk wire.Chunk
		for i := range segments {
			chunk = append(chunk, r.segment(i*each, each))
		}
		for range calls {
			h := c.header()
			h.Writes = []wire.Chunk{chunk}
			c.send(h.Append(nil), rpc(h.XID, 6))
			c.reply(c.next(), readReply(h.XID, make([]byte, segments*each)))
		}
		synctest.Wait()
		c.conn.mu.Lock()
		waiting := len(c.conn.posts)
		c.conn.mu.Unlock()
		require.NotZero(t, waiting)
		closed := make(chan error, 1)
		go func() { closed <- c.conn.Close() }()
		synctest.Wait()
		c.takesRepliesAndCloses(calls)
		require.NoError(t, <-closed)
		c.conn.nothingLeft(t)
	})
}

// takesRepliesAndCloses takes the replies that wait for receives, and ends the connection.
func (c *client) takesRepliesAndCloses(replies int) {
	c.Helper()
	for i := range replies {
		require.NoError(c, c.qp.PostRecv(c.receive(i)))
	}
	var wcs [1]iwarp.WC
	for i := range replies {
		_, err := c.qp.RecvCQ().Wait(within(c), wcs[:])
		require.NoError(c, err)
		require.NoError(c, wcs[0].Err(), "reply %d", i)
	}
	require.NoError(c, c.qp.Close())
}

// TestRPR_14_NoRegionForAReply: the RNIC has none left. The call cannot be answered, so the connection ends, and the client repeats it.
// If the connection stayed, the client would never get an answer, nor the credit back.
func TestRPR_14_NoRegionForAReply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rnic, err := iwarp.Open(&iwarp.Config{Limits: iwarp.Limits{MaxMR: 2}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, rnic.Close()) })
		l, err := rnic.Listen(t.Context(), "pipe", "", nil)
		require.NoError(t, err)
		h := &host{TB: t, server: rnic, client: open(t), l: l, cfg: Config{RNIC: rnic}}
		for _, records := range []bool{false, true} {
			c := h.connect(linux)
			if records {
				s := c.conn.Records()
				hd := c.header()
				c.send(hd.Append(nil), rpc(hd.XID, 0))
				_, err := io.ReadFull(s, make([]byte, 44))
				require.NoError(t, err)
				_, err = s.Write(marked(append(accepted(hd.XID), make([]byte, 100_000)...)))
				require.ErrorIs(t, err, iwarp.ErrLimit)
			} else {
				k := c.call()
				require.ErrorIs(t, k.Reply(t.Context(), accepted(k.rpc.XID), make([]byte, 100_000)), iwarp.ErrLimit)
			}
			select {
			case <-c.conn.Done():
			case <-time.After(time.Hour):
				t.Error("the connection ends")
			}
			require.ErrorIs(t, c.conn.Err(), iwarp.ErrLimit)
			_ = c.conn.qp.Abort()
			<-c.conn.Done()
		}
	})
}

// TestRPR_16_WriteBehindTheEnd fails, whatever part of a record it has.
func TestRPR_16_WriteBehindTheEnd(t *testing.T) {
	for _, closed := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			c := connected(t, Config{})
			s := c.conn.Records()
			if closed {
				go func() { _ = c.qp.Close() }()
				require.NoError(t, s.Close())
			} else {
				require.NoError(t, c.qp.Abort())
				<-c.conn.Done()
			}
			reply := marked(accepted(1))
			for _, n := range []int{1, 4, 10, len(reply)} {
				k, err := s.Write(reply[:n])
				require.ErrorIs(t, err, net.ErrClosed, "%d octets", n)
				require.Zero(t, k)
			}
		})
	}
}

// TestRPR_21_ShutdownOfAConnectionThatEnds does not wait for answers: no client could receive them.
func TestRPR_21_ShutdownOfAConnectionThatEnds(t *testing.T) {
	for _, answers := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			c := connected(t, Config{})
			k := c.call()
			ended := make(chan error, 1)
			go func() { ended <- c.conn.Shutdown(within(t)) }()
			synctest.Wait()
			require.NoError(t, c.qp.Abort())
			<-c.conn.Done()
			if answers {
				require.ErrorIs(t, k.Reply(t.Context(), accepted(k.rpc.XID)), net.ErrClosed)
			}
			select {
			case err := <-ended:
				require.NoError(t, err)
			case <-time.After(time.Minute):
				t.Error("Shutdown ends")
			}
			if !answers {
				require.ErrorIs(t, k.Reply(t.Context(), accepted(k.rpc.XID)), net.ErrClosed)
			}
			c.conn.nothingLeft(t)
		})
	}
}

// TestRPR_16_PartOfARecordBehindTheEnd: memory of the common budget that a reply has used is released, even if the server, like go-nfs,
// does not close a stream that has failed.
func TestRPR_16_PartOfARecordBehindTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		s := c.conn.Records()
		h := c.header()
		c.send(h.Append(nil), rpc(h.XID, 0))
		_, err := io.ReadFull(s, make([]byte, 44))
		require.NoError(t, err)
		reply := marked(append(accepted(h.XID), make([]byte, 100_000)...))
		_, err = s.Write(reply[:5000])
		require.NoError(t, err)
		require.NoError(t, c.qp.Abort())
		<-c.conn.Done()
		_, err = s.Write(reply[5000:])
		require.ErrorIs(t, err, net.ErrClosed)
		c.conn.nothingLeft(t)
	})
}

// TestRPR_21_WhyAReplyCannotBeSent does not depend on its length: a long one first requests memory, and there is none any more.
func TestRPR_21_WhyAReplyCannotBeSent(t *testing.T) {
	for _, n := range []int{4, 100_000} {
		bubble(t, func(t *testing.T) {
			c := connected(t, Config{})
			k := c.call()
			c.send((&wire.Header{XID: k.rpc.XID}).Append(nil), rpc(k.rpc.XID, 0))
			<-c.conn.Done()
			err := k.Reply(t.Context(), accepted(k.rpc.XID), make([]byte, n))
			require.ErrorIs(t, err, net.ErrClosed)
			require.ErrorIs(t, err, errDuplicate)
			c.conn.nothingLeft(t)
		})
	}
}

// TestRPR_21_CloseWaitsForAClientThatIsSlow, as the end of the QP would not: its time is CloseTimeout.
func TestRPR_21_CloseWaitsForAClientThatIsSlow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const calls, each = 4, 1 << 20
		private := wire.Private{Send: 4096, Receive: 4096}.Append(nil) // no Send with Invalidate
		c := newHost(t, "pipe", Config{}).connect(private, noReceives)
		r := c.exposes(each, false)
		for range calls {
			h := c.header()
			h.Writes = []wire.Chunk{r.chunk()}
			c.send(h.Append(nil), rpc(h.XID, 6))
			c.reply(c.next(), readReply(h.XID, make([]byte, each)))
		}
		synctest.Wait()
		c.conn.mu.Lock()
		require.Empty(t, c.conn.posts)
		c.conn.mu.Unlock()
		closed := make(chan error, 1)
		go func() { closed <- c.conn.Close() }()
		time.Sleep(20 * time.Second)
		c.takesRepliesAndCloses(calls)
		require.NoError(t, <-closed)
		c.conn.nothingLeft(t)
	})
}

// TestRPR_21_ShutdownWithAClientThatTakesNoReplies ends a minute after the last call was answered, even if its context does not end.
func TestRPR_21_ShutdownWithAClientThatTakesNoReplies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		private := wire.Private{Send: 4096, Receive: 4096}.Append(nil)
		c := newHost(t, "pipe", Config{}).connect(private, noReceives)
		r := c.exposes(1<<20, false)
		for range 4 {
			h := c.header()
			h.Writes = []wire.Chunk{r.chunk()}
			c.send(h.Append(nil), rpc(h.XID, 6))
			c.reply(c.next(), readReply(h.XID, make([]byte, 1<<20)))
		}
		began, ended := time.Now(), make(chan error, 1)
		go func() { ended <- c.conn.Shutdown(context.Background()) }()
		select {
		case err := <-ended:
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.GreaterOrEqual(t, time.Since(began), time.Minute)
		case <-time.After(time.Hour):
			t.Error("Shutdown ends")
			_ = c.qp.Abort()
		}
		<-c.conn.Done()
		c.conn.nothingLeft(t)
	})
}
