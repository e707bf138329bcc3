package rpcrdma

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

// TestRPR_5_Inline: calls and replies that are inline, up to the exact threshold.
func TestRPR_5_Inline(t *testing.T) {
	for _, threshold := range []int{1024, 4096} {
		bubble(t, func(t *testing.T) {
			c := newHost(t, "pipe", Config{}).connect(wire.Private{Invalidate: true, Send: threshold, Receive: threshold}.Append(nil))
			require.Equal(t, threshold, c.conn.threshold)
			for _, n := range []int{0, 4, threshold - wire.MinLen - wire.CallLen} {
				h := c.header()
				call := rpc(h.XID, 1, octets(3, n)...)
				c.send(h.Append(nil), call)
				k := c.next()
				require.Equal(t, call, k.Message())
				msg := append(accepted(h.XID), octets(5, n)...)
				c.reply(k, msg[:10], msg[10:])
				m := c.recv()
				require.Equal(t, msg, m.body)
				require.Equal(t, wire.Header{XID: h.XID, Version: 1, Credits: 32, Reads: m.header.Reads, Writes: m.header.Writes}, m.header)
				require.Zero(t, m.invalidated, "the call has named no handle")
			}
			h := c.header()
			c.send(h.Append(nil), rpc(h.XID, 1))
			rest := make([]byte, threshold-wire.MinLen-24)
			c.reply(c.next(), accepted(h.XID), rest)
			require.Len(t, c.recv().octets, threshold)
			h = c.header()
			c.send(h.Append(nil), rpc(h.XID, 1))
			require.ErrorIs(t, c.next().Reply(t.Context(), accepted(h.XID), rest, make([]byte, 4)), ErrReply, "one word more")
			c.failure(h.XID, 2)
		})
	}
}

// TestRPR_6_WriteByReadChunk: arguments of WRITE, as Linux sends them.
func TestRPR_6_WriteByReadChunk(t *testing.T) {
	for _, n := range []int{1, 5001, 70000, 1 << 20} {
		bubble(t, func(t *testing.T) {
			c := connected(t, Config{})
			r := c.exposes(n, true)
			copy(r.mem, octets(7, n))
			h := c.header()
			want := rpc(h.XID, 7, opaque(r.mem)...)
			inline := want[:wire.CallLen+4]
			h.Reads = r.reads(len(inline))
			c.send(h.Append(nil), inline)
			k := c.next()
			require.Equal(t, want, k.Message())
			c.reply(k, accepted(h.XID))
			m := c.recv()
			require.Equal(t, accepted(h.XID), m.body)
			require.Empty(t, m.header.Reads)
			require.Equal(t, r.mr.STag(), m.invalidated, "the one handle that the call has named")
			c.serves()
		})
	}
}

// TestRPR_6_OnlyEligibleArguments: of a call of NFSv3 only the data of WRITE and the path of SYMLINK may come by a Read chunk of their own. Another
// argument in one is an error of the transport, also behind a chunk of position zero, which may have any call.
func TestRPR_6_OnlyEligibleArguments(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newHost(t, "pipe", Config{Binding: NFSv3{}}).connect(linux)
		for name, w := range callsWithData {
			for _, proc := range []uint32{w.proc, 9} { // MKDIR has nothing that may
				for _, zero := range []bool{false, true} {
					h := c.header()
					inline := rpc(h.XID, proc, w.args...)
					data := c.exposes(5, true)
					copy(data.mem, "data!")
					h.Reads = data.reads(len(inline))
					if zero {
						whole := c.exposes(len(inline), false)
						copy(whole.mem, inline)
						h.Proc, h.Reads, inline = wire.NoMsg, append(whole.reads(0), h.Reads...), nil
					}
					c.send(h.Append(nil), inline)
					if proc != w.proc {
						c.failure(h.XID, 2)
						continue
					}
					k := c.next()
					require.Equal(t, rpc(h.XID, proc, slices.Concat(w.args, []byte("data!\x00\x00\x00"))...), k.Message(), name)
					c.reply(k, accepted(h.XID))
					require.Equal(t, accepted(h.XID), c.recv().body)
				}
			}
		}
		h := c.header()
		call := rpc(h.XID, 9, octets(3, 6000)...)
		whole := c.exposes(len(call), true)
		copy(whole.mem, call)
		h.Proc, h.Reads = wire.NoMsg, whole.reads(0)
		c.send(h.Append(nil))
		k := c.next()
		require.Equal(t, call, k.Message(), "a whole call is no argument")
		c.reply(k, accepted(h.XID))
		c.recv()
		synctest.Wait()
		require.Zero(t, c.conn.shared.calls.used, "what was refused has given its memory back")
		c.serves()
	})
}

// TestRPR_6_CallByPositionZero: a whole call in a chunk of several segments, with an opaque that is in another one.
func TestRPR_6_CallByPositionZero(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		h := c.header()
		want := rpc(h.XID, 7, opaque(octets(9, 5001))...)
		r, data := c.exposes(wire.CallLen+4, false), c.exposes(5001, false)
		copy(r.mem, want)
		copy(data.mem, want[len(r.mem):])
		h.Proc = wire.NoMsg
		h.Reads = slices.Concat(r.reads(0, 3, 11, 30), data.reads(len(r.mem), 1, 4000))
		c.send(h.Append(nil))
		k := c.next()
		require.Equal(t, want, k.Message())
		c.reply(k, accepted(h.XID))
		require.Zero(t, c.recv().invalidated, "there were two handles")
	})
}

// TestRPR_6_ReadsThatMayBeOutstanding: no more Reads are posted, since replies would wait behind them.
func TestRPR_6_ReadsThatMayBeOutstanding(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newHost(t, "pipe", Config{}).connect(linux, func(q *iwarp.QPConfig) { q.IRD = 2 })
		r, release := c.stuck(10000)
		h := c.header()
		h.Proc, h.Reads = wire.NoMsg, r.reads(0, 1000, 2000, 3000, 4000)
		c.send(h.Append(nil))
		synctest.Wait()
		c.conn.mu.Lock()
		reading := c.conn.reading
		c.conn.mu.Unlock()
		require.Equal(t, 2, reading)
		release()
		c.failure(h.XID, 2) // the XID of the octets is another one
	})
}

// TestRPR_7_ReadByWriteChunk: data of READ goes to the memory of the client, even if it is short; the pad does not.
func TestRPR_7_ReadByWriteChunk(t *testing.T) {
	for _, n := range []int{0, 1, 7003, 1 << 20} {
		bubble(t, func(t *testing.T) {
			c := connected(t, Config{})
			data, pad := c.exposes(max(n, 1), false), c.exposes(4, false)
			copy(pad.mem, "keep")
			h := c.header()
			h.Writes = []wire.Chunk{{data.segment(0, n), pad.segment(0, 4)}}
			c.send(h.Append(nil), rpc(h.XID, 6))
			k := c.next()
			msg := readReply(h.XID, octets(1, n))
			c.reply(k, msg)
			m := c.recv()
			require.Equal(t, octets(1, n), data.mem[:n])
			require.Equal(t, "keep", string(pad.mem))
			require.Equal(t, []wire.Chunk{{data.segment(0, n), pad.segment(0, 0)}}, m.header.Writes)
			require.Equal(t, msg[:24+20], m.body, "the length stays, the pad goes")
			require.Zero(t, m.invalidated, "the handle of the pad segment must stay valid")
		})
	}
}

// TestRPR_7_FailedRead: a reply without data returns the Write list with lengths of zero.
func TestRPR_7_FailedRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		data := c.exposes(100, true)
		h := c.header()
		h.Writes = []wire.Chunk{data.chunk(40)}
		c.send(h.Append(nil), rpc(h.XID, 6))
		msg := append(accepted(h.XID), 0, 0, 0, 5, 0, 0, 0, 0) // NFS3ERR_IO
		c.reply(c.next(), msg)
		m := c.recv()
		require.Equal(t, msg, m.body)
		require.Equal(t, []wire.Chunk{{data.segment(0, 0), data.segment(40, 0)}}, m.header.Writes)
		require.Equal(t, data.mr.STag(), m.invalidated)
		require.Equal(t, make([]byte, 100), data.mem)
	})
}

// TestRPR_8_ReplyByReplyChunk: over three segments with odd cuts, but not if it fits inline together with the chunk, which is
// returned in any case.
func TestRPR_8_ReplyByReplyChunk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		const most = 4096 - wire.MinLen - wire.ReplyLen - 2*16
		for _, n := range []int{100, most, most + 1, 8000} {
			r := c.exposes(8192, true)
			h := c.header()
			h.Reply, h.HasReply = r.chunk(124, 4001), true
			c.send(h.Append(nil), rpc(h.XID, 17))
			msg := append(accepted(h.XID), octets(2, n-24)...)
			c.reply(c.next(), msg)
			m := c.recv()
			require.Equal(t, r.mr.STag(), m.invalidated, "one handle, in three segments")
			if n <= most {
				require.Equal(t, msg, m.body)
				require.Equal(t, wire.Chunk{r.segment(0, 0), r.segment(124, 0), r.segment(4001, 0)}, m.header.Reply)
				continue
			}
			require.Equal(t, wire.NoMsg, m.header.Proc)
			require.Empty(t, m.body)
			first, second := min(n-124, 3877), max(n-4001, 0)
			require.Equal(t, wire.Chunk{r.segment(0, 124), r.segment(124, first), r.segment(4001, second)}, m.header.Reply)
			require.Equal(t, msg, r.mem[:n])
		}
	})
}

// TestRPR_9_TooLongForItsChunks: the client is told, and only that call fails.
func TestRPR_9_TooLongForItsChunks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{MaxBytes: 20 << 20})
		r := c.exposes(100, false)
		for what, chunks := range map[string]wire.Header{
			"no chunk":                {},
			"a Write chunk too short": {Writes: []wire.Chunk{r.chunk(50)}},
			"a Reply chunk too short": {Reply: r.chunk(50), HasReply: true},
		} {
			for _, n := range []int{5000, 3 << 20} {
				h := c.header()
				h.Writes, h.Reply, h.HasReply = chunks.Writes, chunks.Reply, chunks.HasReply
				c.send(h.Append(nil), rpc(h.XID, 6))
				require.ErrorIs(t, c.next().Reply(t.Context(), readReply(h.XID, make([]byte, n))), ErrReply, what)
				c.failure(h.XID, 2)
			}
		}
		require.Equal(t, make([]byte, 100), r.mem, "nothing was written")
		c.serves()
	})
}

// TestRPR_10_Version: a header of another version is answered with the range of versions.
func TestRPR_10_Version(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		for _, version := range []uint32{0, 2, 1 << 31} {
			h := c.header()
			b := h.Append(nil)
			b[4], b[5], b[6], b[7] = byte(version>>24), byte(version>>16), byte(version>>8), byte(version)
			c.send(b, rpc(h.XID, 0))
			require.Equal(t, wire.AppendVersionFailure(nil, h.XID, version, 32), c.recv().octets)
		}
		c.serves()
	})
}

// TestRPR_11_Invalidate: only if the client takes it, and has named exactly one handle.
func TestRPR_11_Invalidate(t *testing.T) {
	for _, takes := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			c := newHost(t, "pipe", Config{}).connect(wire.Private{Invalidate: takes, Send: 4096, Receive: 4096}.Append(nil))
			one, other := c.exposes(100, true), c.exposes(100, true)
			for _, both := range []bool{true, false} {
				h := c.header()
				h.Reply, h.HasReply = one.chunk(10), true
				if both {
					h.Writes = []wire.Chunk{other.chunk()}
				}
				c.send(h.Append(nil), rpc(h.XID, 0))
				c.reply(c.next(), accepted(h.XID))
				want := one.mr.STag()
				if both || !takes {
					want = stag.STag(0)
				}
				require.Equal(t, want, c.recv().invalidated)
			}
		})
	}
}

// TestRPR_12_OnePost: the Writes of a reply and its Send are posted as one list, and the sources are kept until the
// Send has completed.
func TestRPR_12_OnePost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		r := c.exposes(9000, true)
		h := c.header()
		h.Writes = []wire.Chunk{r.chunk(10, 4000)}
		c.send(h.Append(nil), rpc(h.XID, 6))
		k := c.next()
		o, err := c.conn.begin(nil, len(readReply(h.XID, r.mem)))
		require.NoError(t, err)
		copy(o.message(), readReply(h.XID, octets(1, 9000)))
		require.NoError(t, c.conn.claim(k))
		require.NoError(t, c.conn.answer(k, o))
		require.Len(t, o.wrs, 4)
		for _, w := range o.wrs[:3] {
			require.Equal(t, iwarp.OpRDMAWrite, w.Op)
			require.Equal(t, iwarp.Unsignaled, w.Flags)
		}
		require.Equal(t, iwarp.OpSendInvalidate, o.wrs[3].Op)
		require.Equal(t, octets(1, 9000), func() []byte { c.recv(); return r.mem }())
	})
}
