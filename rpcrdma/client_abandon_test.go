package rpcrdma

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A slowContext ends when it is told to, and then runs a function, once, before Err returns the reason.
type slowContext struct {
	context.Context
	once  sync.Once
	ended func()
}

func (c *slowContext) Err() error {
	err := c.Context.Err()
	if err != nil {
		c.once.Do(c.ended)
	}
	return err
}

// TestRPR_22_CanceledSlot: the reply to a call that is being given up comes before Do has returned, and another call gets its slot.
// The end of the first call does not withdraw the memory of the second one.
func TestRPR_22_CanceledSlot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newHost(t, "pipe", Config{}).call(&ClientConfig{Credits: 1})
		data := octets(1, 100)
		memory := make([]byte, len(data))
		second := make(chan error)
		inner, cancel := context.WithCancel(t.Context())
		ctx := &slowContext{Context: inner, ended: func() {
			k, err := p.conn.ReadCall(t.Context())
			require.NoError(t, err)
			require.NoError(t, k.Reply(t.Context(), accepted(1)))
			go func() {
				_, err := p.client.Do(t.Context(), &Request{Head: rpc(2, procRead), Result: memory, MaxReply: 100})
				second <- err
			}()
			synctest.Wait()
		}}
		first := make(chan error)
		go func() {
			_, err := p.client.Do(ctx, &Request{Head: rpc(1, procRead), Result: make([]byte, 10), MaxReply: 100})
			first <- err
		}()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-first, context.Canceled)
		k, err := p.conn.ReadCall(t.Context())
		require.NoError(t, err)
		require.NoError(t, k.Reply(t.Context(), readReply(2, data)))
		require.NoError(t, <-second)
		require.Equal(t, data, memory)
	})
}

// TestRPR_22_MemoryIsTheCallersAgain when Do returns: the Client keeps none of it, however the call has ended.
func TestRPR_22_MemoryIsTheCallersAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newHost(t, "pipe", Config{}).call(nil)
		request := func(xid uint32) *Request {
			return &Request{Head: rpc(xid, procRead), Result: make([]byte, 10), Buf: make([]byte, 5000), MaxReply: 5000}
		}
		keepsNothing := func(why string) {
			t.Helper()
			for i := range p.client.slots {
				require.Nil(t, p.client.slots[i].mem, why)
				require.Empty(t, p.client.slots[i].mrs, why)
			}
		}
		did := make(chan error)
		do := func(ctx context.Context, r *Request) {
			go func() {
				_, err := p.client.Do(ctx, r)
				did <- err
			}()
			synctest.Wait()
		}
		answer := func(xid uint32) {
			k, err := p.conn.ReadCall(t.Context())
			require.NoError(t, err)
			require.NoError(t, k.Reply(t.Context(), accepted(xid), make([]byte, 4500)))
		}
		do(t.Context(), request(1))
		answer(1)
		require.NoError(t, <-did)
		keepsNothing("the reply was in it")

		ctx, cancel := context.WithCancel(t.Context())
		do(ctx, request(2))
		_, err := p.client.Do(t.Context(), request(2))
		require.ErrorIs(t, err, errSameXID)
		cancel()
		require.ErrorIs(t, <-did, context.Canceled)
		keepsNothing("one was not sent, and one has no reply yet")

		do(t.Context(), request(3))
		require.NoError(t, p.client.qp.Abort())
		require.ErrorIs(t, <-did, net.ErrClosed)
		keepsNothing("the connection has ended")
	})
}

// TestRPR_22_CanceledTurn: a call that is given up as it gets a slot returns it, and its credit.
func TestRPR_22_CanceledTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newHost(t, "pipe", Config{}).call(&ClientConfig{Credits: 2})
		p.serves(func(call []byte) []byte { return accepted(xidOfCall(call)) })
		c := p.client
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		c.mu.Lock()
		c.grant = 0
		c.mu.Unlock()
		go func() {
			_, err := c.Do(ctx, &Request{Head: rpc(1, 0)})
			ended <- err
		}()
		synctest.Wait()
		c.mu.Lock()
		cancel()
		c.grant = 1
		c.admit()
		require.Equal(t, 1, c.calls)
		c.mu.Unlock()
		require.ErrorIs(t, <-ended, context.Canceled)
		p.do(&Request{Head: rpc(2, 0)})
	})
}

// TestRPR_22_RepliesToCanceledCalls return their receives, however many there are.
func TestRPR_22_RepliesToCanceledCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newHost(t, "pipe", Config{}).call(&ClientConfig{Credits: 1})
		for xid := range uint32(p.client.receives() + 2) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := p.client.Do(ctx, &Request{Head: rpc(xid, 0)})
				ended <- err
			}()
			k, err := p.conn.ReadCall(within(t))
			require.NoError(t, err)
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
			require.NoError(t, k.Reply(t.Context(), accepted(xid)))
		}
	})
}
