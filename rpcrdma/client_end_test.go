package rpcrdma

import (
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/wiretest"
)

// TestRPR_22_TheContextEndsWhileTheConnectionDoes: a server that does not end its half delays Close, but no call for longer than its
// context allows.
func TestRPR_22_TheContextEndsWhileTheConnectionDoes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		over := make(chan struct{})
		defer close(over)
		addr := wiretest.Serve(t, func(p *wiretest.Peer) {
			request := p.Read(20)
			p.Read(int(binary.BigEndian.Uint16(request[18:])))
			p.Reply("50 02 0004 4010 8010")
			<-over
		})
		c, err := Dial(t.Context(), open(t), "pipe", addr, nil)
		require.NoError(t, err)
		do := func(xid uint32) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := c.Do(ctx, &Request{Head: rpc(xid, 0)})
			return err
		}
		begin, under := time.Now(), make(chan error, 1)
		go func() { under <- do(1) }()
		synctest.Wait()
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_ = c.Close() // the server has not ended its half in time
		}()
		synctest.Wait()
		require.ErrorIs(t, do(2), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(begin))
		require.ErrorIs(t, <-under, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(begin))
		<-closed
	})
}

// TestRPR_21_TheContextEndsWhileTheConnectionDoes: likewise a client, and ReadCall.
func TestRPR_21_TheContextEndsWhileTheConnectionDoes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHost(t, "pipe", Config{})
		accepted := make(chan *Conn, 1)
		go func() {
			defer close(accepted)
			if cr, err := h.l.Accept(t.Context()); err == nil {
				c, _ := Accept(t.Context(), cr, &h.cfg)
				accepted <- c
			}
		}()
		p := wiretest.Dial(t, "pipe", h.l.Addr().String(), wiretest.Hex("50 02 0004 8010 c010"))
		defer p.Close()
		c := <-accepted
		require.NotNil(t, c)
		begin, read, closed := time.Now(), make(chan error, 1), make(chan struct{})
		go func() {
			defer close(closed)
			_ = c.Close() // the client has not ended its half in time
		}()
		synctest.Wait()
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := c.ReadCall(ctx)
			read <- err
		}()
		require.ErrorIs(t, <-read, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(begin))
		<-closed
	})
}
