package rpcrdma

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A slowContext ends when it is told to, and then runs a function, once, before it says why.
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
