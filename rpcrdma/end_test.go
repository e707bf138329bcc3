package rpcrdma

import (
	"net"
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

// TestRPR_15_TheWindowOfASolicitor: a Read that gets no part of it in time is not sent. Its QP would live on, but the call cannot be had,
// so the connection ends, and the client repeats the call on the next one.
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
