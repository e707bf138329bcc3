package rma

import (
	"bytes"
	"math"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
)

// A badOp is an operation that fails while its connection survives.
type badOp struct {
	name  string
	begin func(w *pair, h *Handle, cmd *Command)
	want  error
	text  string
	only  Op // 0: it fails for all operations
}

func badOps() []badOp {
	const auth = "remote authentication failure"
	return []badOp{
		{"another key", func(_ *pair, h *Handle, _ *Command) {
			k := *h.keys.Load()
			k.readOut, k.writeOut = k.writeOut, k.readOut
			h.keys.Store(&k)
		}, ErrRemoteAuth, "of region 0x1122334455667788 at 0: " + auth + " (bad key)", 0},
		{"an old key", func(w *pair, _ *Handle, _ *Command) {
			_, err := w.region.Rekey(w.context(), nil, 0)
			require.NoError(w, err)
		}, ErrRemoteAuth, "of region 0x1122334455667788 at 0: " + auth + " (stale epoch)", 0},
		{"an epoch that is not yet", func(_ *pair, h *Handle, _ *Command) {
			k := *h.keys.Load()
			k.epoch++
			h.keys.Store(&k)
		}, ErrRemoteAuth, auth + " (bad key)", 0},
		{"a region of another client", func(_ *pair, h *Handle, _ *Command) { h.region = 2 }, ErrRemoteAuth, "of region 0x2 at 0: " + auth + " (bad key)", 0},
		{"a region that does not exist", func(_ *pair, h *Handle, _ *Command) { h.region = 3 }, ErrRemoteAuth, "of region 0x3 at 0: " + auth + " (bad key)", 0},
		{"an offset near the end of all numbers", func(_ *pair, _ *Handle, cmd *Command) { cmd.Off = math.MaxUint64 - 7 }, ErrBounds, "at 18446744073709551608: outside of the region", 0},
		{"a length that wraps", func(_ *pair, _ *Handle, cmd *Command) { cmd.Off = math.MaxUint64 - 15 }, ErrBounds, "at 18446744073709551600: outside of the region", 0},
		{"longer than the window", func(_ *pair, _ *Handle, cmd *Command) { cmd.Buf = make([]byte, 2048) }, ErrDispatchTimeout, "operation larger than the window can be", Read},
		{"longer than an operation may be", func(_ *pair, _ *Handle, cmd *Command) { cmd.Buf = make([]byte, 4097) }, errTooLong, "rma: longer than an operation may be: see Client.MaxOp", 0},
	}
}

// A badMessage is a message that ends its connection.
type badMessage struct {
	name string
	send func(w *pair, r *raw)
	want error
	text string
}

func badMessages() []badMessage {
	request := func(r *raw, id op.ID, n uint32) []byte {
		q := wire.WriteReq{Region: regionID, Epoch: 1, Length: n}
		return q.Append(nil, r.header(id), r.out, r.sealer(regionkey.Write, regionkey.Initiator))
	}
	return []badMessage{
		{"forged", func(_ *pair, r *raw) {
			msg := request(r, 2, 16)
			msg[len(msg)-1] ^= 1
			r.sends(msg)
		}, wire.ErrTag, "rma: the outer tag of a message is wrong"},
		{"cut", func(_ *pair, r *raw) { msg := request(r, 2, 16); r.sends(msg[:len(msg)-1]) }, wire.ErrMalformed, "rma: malformed message: "},
		{"less than a header", func(_ *pair, r *raw) { r.sends(request(r, 2, 16)[:23]) }, wire.ErrMalformed, "23 octets, fewer than a header"},
		{"longer", func(_ *pair, r *raw) { r.sends(append(request(r, 2, 16), 0)) }, wire.ErrMalformed, "rma: malformed message: "},
		{"of an unknown type", func(_ *pair, r *raw) { msg := request(r, 2, 16); msg[1] = 13; r.sends(msg) }, wire.ErrMalformed, "type 13"},
		{"repeated", func(_ *pair, r *raw) {
			msg := request(r, 2, 16)
			r.sends(msg)
			r.receives(wire.TypePull)
			r.sends(msg)
		}, wire.ErrCounter, "rma: not the next message"},
		{"beyond the credits", func(w *pair, r *raw) {
			for i := range w.server.cfg.Depth + 1 {
				r.sends(request(r, op.ID(2+i), 16))
			}
		}, errProtocol, "more requests than the peer has credits"},
		{"longer than an operation may be", func(_ *pair, r *raw) { r.sends(request(r, 2, 4097)) }, errProtocol, "an operation that is too long"},
		{"data that were never pulled", func(_ *pair, r *raw) {
			m := wire.Data{Length: 16}
			r.sends(m.Append(nil, r.header(7), r.out))
		}, errProtocol, "data that nothing has asked for"},
		{"the ID of another request", func(_ *pair, r *raw) { r.sends(request(r, 2, 16)); r.sends(request(r, 2, 16)) }, errProtocol, "a request with the ID of another one"},
	}
}

// honestPair makes a server, and an honest client of it. The returned function writes and reads, and requires both to
// succeed.
func honestPair(t *testing.T) (*pair, func()) {
	t.Helper()
	w := start(t, plan{server: ServerConfig{Depth: 8}})
	_, err := w.server.Register(2, NewMemory(make([]byte, 64)), nil)
	require.NoError(t, err)
	h, p := w.opens(), w.portal(1)
	return w, func() {
		t.Helper()
		if h.Epoch() != w.region.Epoch() {
			require.NoError(t, h.Reopen(w.context()))
		}
		want := octets(byte(w.region.Epoch()), 100)
		require.NoError(t, does(t, p, Command{Op: Write, Handle: h, Off: 1000, Buf: want}).Err)
		got := make([]byte, 100)
		require.NoError(t, does(t, p, Command{Op: Read, Handle: h, Off: 1000, Buf: got}).Err)
		require.Equal(t, want, got)
		w.mem.View(func(b []byte) {
			require.Equal(t, len(b)-100, bytes.Count(b[:1000], []byte{0})+bytes.Count(b[1100:], []byte{0}), "nothing else was written")
		})
	}
}

// TestRMA_8_9_10_28_BadOperations: they fail with their errors. The next operation of the same connection, and those of
// others, succeed.
func TestRMA_8_9_10_28_BadOperations(t *testing.T) {
	for _, c := range badOps() {
		for _, what := range []Op{Read, Write} {
			if c.only != 0 && c.only != what {
				continue
			}
			t.Run(c.name+", "+what.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w, good := honestPair(t)
					other := w.another()
					other.plan.client.Solicitor = fixed(t, 1024)
					other.serve()
					var err error
					other.client, err = NewClient(w.context(), other.qps[0], &other.plan.client)
					require.NoError(t, err)
					h, p := other.opens(), other.portal(2)
					cmd := Command{Op: what, Handle: h, Buf: bytes.Repeat([]byte{0x5a}, 16)}
					c.begin(w, h, &cmd)
					other.fails(p, cmd, &c)
					good()
					again := Command{Op: what, Handle: other.opens(), Off: 1000, Buf: octets(byte(w.region.Epoch()), 100)}
					require.NoError(t, does(t, p, again).Err, "the next operation of the connection")
					require.NoError(t, other.client.Close())
					require.NoError(t, <-other.served)
					good()
				})
			})
		}
	}
}

// fails requires an operation to fail as described.
func (w *pair) fails(p *Portal, cmd Command, c *badOp) {
	w.Helper()
	_, err := p.Post(cmd)
	if err == nil {
		var one [1]Completion
		_, err = p.Wait(w.context(), one[:])
		require.NoError(w, err)
		err = one[0].Err
	}
	require.ErrorIs(w, err, c.want)
	require.ErrorContains(w, err, c.text)
	require.NotErrorIs(w, err, net.ErrClosed)
	require.NoError(w, w.client.Err())
}

// TestRMA_39_42_BadMessages: each ends its connection with an error and a record. Other connections survive.
func TestRMA_39_42_BadMessages(t *testing.T) {
	for _, c := range badMessages() {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, good := honestPair(t)
				other := w.another()
				other.serve()
				r := newRaw(other)
				r.greets()
				r.opens(1, regionID, wire.OpRead|wire.OpWrite)
				before := w.server.Stats()
				c.send(other, r)
				for {
					if _, _, err := r.next(); err != nil {
						break
					}
				}
				err := <-other.served
				require.ErrorIs(t, err, c.want)
				require.ErrorContains(t, err, c.text)
				synctest.Wait()
				log := w.server.AuditLog()
				require.Equal(t, err.Error(), log[len(log)-1].Reason)
				require.Equal(t, before.Audited+1, w.server.Stats().Audited)
				require.Equal(t, 1, w.server.Stats().Connections, "that of the other client")
				require.Zero(t, w.server.solicitor.Stats().Granted)
				require.NoError(t, w.client.Err())
				good()
			})
		})
	}
}
