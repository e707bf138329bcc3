package rpcrdma

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

// TestRPR_21_Shutdown: calls in hand are answered, later ones are not taken, and then the connection ends.
func TestRPR_21_Shutdown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		taken := c.call()
		h := c.header()
		c.send(h.Append(nil), rpc(h.XID, 0)) // not taken yet, but there
		synctest.Wait()
		ended := make(chan error, 1)
		go func() { ended <- c.conn.Shutdown(within(t)) }()
		synctest.Wait()
		late := c.header()
		c.send(late.Append(nil), rpc(late.XID, 0))
		c.reply(taken, accepted(taken.rpc.XID))
		require.Equal(t, taken.rpc.XID, c.recv().header.XID)
		k := c.next()
		require.Equal(t, h.XID, k.rpc.XID)
		synctest.Wait()
		require.Empty(t, ended, "a call is in hand")
		c.reply(k, accepted(h.XID))
		require.Equal(t, h.XID, c.recv().header.XID)
		require.NoError(t, <-ended)
		_, err := c.conn.ReadCall(t.Context())
		require.ErrorIs(t, err, net.ErrClosed)
		require.NoError(t, c.ended())
		c.conn.nothingLeft(t)
	})
}

// TestRPR_21_ShutdownIsBounded by its context.
func TestRPR_21_ShutdownIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		k := c.call()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, c.conn.Shutdown(ctx), context.DeadlineExceeded)
		require.ErrorIs(t, k.Reply(t.Context(), accepted(k.rpc.XID)), net.ErrClosed)
		c.conn.nothingLeft(t)
	})
}

// TestRPR_21_Contexts: a wait ends with its context, and the call can still be answered.
func TestRPR_21_Contexts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{Credits: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.conn.ReadCall(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		k := c.call()
		o := <-c.conn.idle // as if it were not sent yet
		require.ErrorIs(t, k.Reply(ctx, accepted(k.rpc.XID)), context.DeadlineExceeded)
		c.conn.abandon(o)
		require.NoError(t, k.Reply(ctx, accepted(k.rpc.XID)), "it need not wait")
		c.recv()
	})
}

// TestRPR_15_NothingLeaks: a connection that ends in the middle of calls releases everything.
func TestRPR_15_NothingLeaks(t *testing.T) {
	for _, when := range []string{"reads", "ready", "in hand"} {
		bubble(t, func(t *testing.T) {
			c := connected(t, Config{})
			h := c.header()
			h.Proc = wire.NoMsg
			release := func() {}
			if when == "reads" {
				var r *region
				r, release = c.stuck(100000)
				h.Reads = r.reads(0)
			} else {
				r := c.exposes(100000, false)
				copy(r.mem, rpc(h.XID, 7))
				h.Reads = r.reads(0)
			}
			c.send(h.Append(nil))
			var k *Call
			if when == "in hand" {
				k = c.next()
			}
			synctest.Wait()
			require.Positive(t, c.conn.shared.calls.inUse())
			require.NoError(t, c.conn.qp.Abort())
			<-c.conn.Done()
			if k != nil {
				require.Positive(t, c.conn.shared.calls.used, "the user has it")
				require.ErrorIs(t, k.Reply(t.Context(), accepted(h.XID)), net.ErrClosed)
			}
			c.conn.nothingLeft(t)
			release()
		})
	}
}

// TestRPR_21_Listener: its connections are served as streams; it closes with calls in hand.
func TestRPR_21_Listener(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHost(t, "pipe", Config{})
		l := NewListener(h.l, &h.cfg)
		require.Equal(t, h.l.Addr(), l.Addr())
		served := make(chan error, 1)
		go func() { served <- echo(l) }()
		var clients []*client
		for range 3 {
			c, err := h.dial(linux)
			require.NoError(t, err)
			clients = append(clients, c)
			hd := c.header()
			c.send(hd.Append(nil), rpc(hd.XID, 0))
			require.Equal(t, accepted(hd.XID), c.recv().body)
		}
		require.NoError(t, l.Shutdown(within(t)))
		require.ErrorIs(t, <-served, net.ErrClosed)
		for _, c := range clients {
			<-c.qp.Done()
		}
		synctest.Wait()
		l.mu.Lock()
		require.Empty(t, l.live)
		l.mu.Unlock()
		require.NoError(t, l.Shutdown(within(t)))
	})
}

// echo serves ONC RPC as a program for TCP does: one call of a connection after the other.
func echo(l net.Listener) error {
	for {
		s, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = s.Close() }()
			b := make([]byte, 44)
			for {
				if _, err := io.ReadFull(s, b); err != nil {
					return
				}
				time.Sleep(time.Second)
				xid, _ := xidOf(b[4:])
				if _, err := s.Write(marked(accepted(xid))); err != nil {
					return
				}
			}
		}()
	}
}

// TestRPR_21_ListenerCloses: it takes no more connections, and existing connections stay open.
func TestRPR_21_ListenerCloses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHost(t, "pipe", Config{})
		l := NewListener(h.l, &h.cfg)
		c, err := h.dial(linux)
		require.NoError(t, err)
		s, err := l.Accept()
		require.NoError(t, err)
		never, err := h.dial(linux) // is not accepted
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, l.Close())
		<-never.qp.Done()
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = h.dial(linux)
		require.Error(t, err)
		hd := c.header()
		c.send(hd.Append(nil), rpc(hd.XID, 0))
		_, err = io.ReadFull(s, make([]byte, 44))
		require.NoError(t, err)
		_, err = s.Write(marked(accepted(hd.XID)))
		require.NoError(t, err)
		c.recv()
		require.NoError(t, s.Close())
	})
}

// TestRPR_21_ListenerBoundsWhatWaitsForAccept: further clients wait until Accept has returned a connection, or a connection has ended.
func TestRPR_21_ListenerBoundsWhatWaitsForAccept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHost(t, "pipe", Config{Credits: 1, Inline: 1024})
		l := NewListener(h.l, &h.cfg)
		cfg := &ClientConfig{Credits: 1, Inline: 1024}
		var first *Client
		for range backlog {
			c, err := Dial(within(t), h.client, "pipe", l.Addr().String(), cfg)
			require.NoError(t, err)
			first = c
		}
		dialled := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := Dial(within(t), h.client, "pipe", l.Addr().String(), cfg)
				dialled <- err
			}()
		}
		synctest.Wait()
		require.Empty(t, dialled)
		_, err := l.Accept()
		require.NoError(t, err)
		require.NoError(t, <-dialled)
		synctest.Wait()
		require.Empty(t, dialled)
		require.NoError(t, first.Close())
		require.NoError(t, <-dialled)
		require.NoError(t, l.Shutdown(within(t)))
	})
}

// TestAListenerTellsWhatItRefuses, and why: the client takes no Reads, or this side cannot go on.
func TestAListenerTellsWhatItRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		foreign bool // Config.RNIC is that of the client
		ird     int
		want    string
	}{
		"no Reads":     {false, -1, errIRD.Error()},
		"another RNIC": {true, 16, "belongs to another RNIC"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				h := newHost(t, "pipe", Config{})
				if c.foreign {
					h.cfg.RNIC = h.client
				}
				refused := make(chan string, 1)
				h.cfg.Refused = func(remote net.Addr, cause error) { refused <- remote.Network() + ": " + cause.Error() }
				l := NewListener(h.l, &h.cfg)
				_, err := h.dial(linux, func(q *iwarp.QPConfig) { q.IRD = c.ird })
				require.ErrorIs(t, err, iwarp.ErrRejected)
				got := <-refused
				require.Contains(t, got, "pipe: ")
				require.Contains(t, got, c.want)
				require.NoError(t, l.Close())
			})
		})
	}
}

// TestRPR_21_BadConfiguration is an error of Accept.
func TestRPR_21_BadConfiguration(t *testing.T) {
	h := newHost(t, "pipe", Config{})
	l := NewListener(h.l, &Config{})
	_, err := l.Accept()
	require.Error(t, err)
	require.NoError(t, l.Close())
}

// TestRPR_5_OverNetworks moves calls and replies over networks of each kind.
func TestRPR_5_OverNetworks(t *testing.T) {
	for _, network := range []string{"pipe", "tcp", "sctp+udp"} {
		t.Run(network, func(t *testing.T) {
			c := newHost(t, network, Config{}).connect(linux)
			for _, n := range []int{1, 5000, 1 << 20} {
				in, out := c.exposes(n, true), c.exposes(n, true)
				copy(in.mem, octets(5, n))
				h := c.header()
				call := rpc(h.XID, 7, opaque(in.mem)...)
				h.Reads = in.reads(wire.CallLen + 4)
				c.send(h.Append(nil), call[:wire.CallLen+4])
				k := c.next()
				require.Equal(t, call, k.Message())
				c.reply(k, accepted(h.XID))
				c.recv()

				h = c.header()
				h.Writes = []wire.Chunk{out.chunk(n / 2)}
				c.send(h.Append(nil), rpc(h.XID, 6))
				c.reply(c.next(), readReply(h.XID, octets(8, n)))
				c.recv()
				require.Equal(t, octets(8, n), out.mem)
			}
			require.NoError(t, c.qp.Close())
			<-c.conn.Done()
			require.NoError(t, c.conn.Err())
		})
	}
}

// TestRPR_21_ACallThatArrivesDuringShutdown is not taken, and its memory is released.
func TestRPR_21_ACallThatArrivesDuringShutdown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		k := c.call()
		const n = 100_000
		mr, err := c.pd.RegisterBuffer(&slow{stuck{size: n}}, stag.LocalWrite|stag.RemoteRead, &iwarp.MROptions{BaseTO: regionTO})
		require.NoError(t, err)
		r := &region{mr: mr, mem: make([]byte, n)}
		c.post((&wire.Header{XID: 0x77, Proc: wire.NoMsg, Reads: r.reads(0)}).Append(nil))
		synctest.Wait()
		ended := make(chan error, 1)
		go func() { ended <- c.conn.Shutdown(t.Context()) }()
		time.Sleep(shortPatience)
		require.EqualValues(t, n, c.conn.qp.Stats().Received.ReadResponse.Octets)
		c.reply(k, accepted(k.rpc.XID))
		c.recv()
		require.NoError(t, c.ended())
		require.NoError(t, <-ended)
		c.conn.nothingLeft(t)
	})
}
