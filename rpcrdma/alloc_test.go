package rpcrdma

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

// A loop is a client that sends the same call repeatedly, and an upper layer that answers it with the same reply.
// Neither allocates, so only allocations of the package are counted.
type loop struct {
	c     *client
	send  [1]iwarp.SendWR
	local [1]iwarp.SGE
	recv  [clientReceives]iwarp.RecvWR
	wcs   [1]iwarp.WC
	reply []byte
}

func newLoop(c *client, call, reply []byte) *loop {
	l := &loop{c: c, reply: reply}
	l.local[0] = c.out.Slice(0, copy(c.mem, call))
	l.send[0] = iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Local: l.local[:]}
	for i := range l.recv {
		l.recv[i] = c.receive(i)
	}
	return l
}

func (l *loop) run() {
	ctx := context.Background()
	err := l.c.qp.PostSend(l.send[:]...)
	if err == nil {
		var k *Call
		if k, err = l.c.conn.ReadCall(ctx); err == nil {
			err = k.Reply(ctx, l.reply)
		}
	}
	if err == nil {
		_, err = l.c.qp.RecvCQ().Wait(ctx, l.wcs[:])
	}
	if err == nil {
		i := l.wcs[0].ID
		err = l.c.qp.PostRecv(l.recv[i : i+1]...)
	}
	if err != nil {
		panic(err)
	}
}

// TestRPR_19_Allocations: a GETATTR does not allocate, nor does a WRITE or a READ of 1 MiB by chunks.
func TestRPR_19_Allocations(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	const size = 1 << 20
	plain := wire.Private{Send: 4096, Receive: 4096}.Append(nil)
	for name, make := range map[string]func(c *client, h *wire.Header) (call, reply []byte){
		"GETATTR": func(_ *client, h *wire.Header) ([]byte, []byte) {
			return rpc(h.XID, 1, octets(1, 20)...), append(accepted(h.XID), octets(2, 88)...)
		},
		"READ": func(c *client, h *wire.Header) ([]byte, []byte) {
			h.Writes = []wire.Chunk{c.exposes(size, false).chunk()}
			return rpc(h.XID, 6, octets(1, 32)...), readReply(h.XID, octets(1, size))
		},
		"WRITE": func(c *client, h *wire.Header) ([]byte, []byte) {
			h.Reads = c.exposes(size, false).reads(wire.CallLen + 4)
			return append(rpc(h.XID, 7), 0, size>>16, 0, 0), accepted(h.XID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newHost(t, "pipe", Config{}).connect(plain)
			h := c.header()
			call, reply := make(c, h)
			l := newLoop(c, append(h.Append(nil), call...), reply)
			for range 20 {
				l.run()
			}
			require.Less(t, testing.AllocsPerRun(200, l.run), 1.0)
		})
	}
}

// TestRPR_22_Allocations: an inline call of a Client does not allocate if it brings memory for its reply.
func TestRPR_22_Allocations(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	p := newHost(t, "pipe", Config{}).call(nil)
	reply := append(accepted(1), octets(2, 88)...)
	p.serves(func([]byte) []byte { return reply }) // clones each call: one allocation, and a goroutine
	r := &Request{Head: rpc(1, 1, octets(1, 20)...), Buf: make([]byte, 0, 200)}
	ctx := context.Background()
	do := func() {
		if _, err := p.client.Do(ctx, r); err != nil {
			panic(err)
		}
	}
	for range 20 {
		do()
	}
	require.Less(t, testing.AllocsPerRun(200, do), 4.0, "those of the server of the test")
}

// BenchmarkRead is READ of 1 MiB from memory, over TCP.
func BenchmarkRead(b *testing.B) {
	const size = 1 << 20
	c := newHost(b, "tcp", Config{}).connect(wire.Private{Send: 4096, Receive: 4096}.Append(nil))
	h := c.header()
	h.Writes = []wire.Chunk{c.exposes(size, false).chunk()}
	l := newLoop(c, append(h.Append(nil), rpc(h.XID, 6)...), readReply(h.XID, make([]byte, size)))
	b.SetBytes(size)
	for b.Loop() {
		l.run()
	}
}
