package rpcrdma

import (
	"encoding/binary"
	"math"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

// untouched checks that a hostile header has cost no memory and no Read.
func (c *client) untouched() {
	c.Helper()
	synctest.Wait()
	p := c.conn.callMemory.p
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Zero(c, p.used+p.kept)
	require.Zero(c, c.conn.qp.Stats().Sent.ReadRequest.Messages)
}

// TestRPR_18_Headers: headers that make no sense are answered, and the connection serves other calls.
func TestRPR_18_Headers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		const big = math.MaxUint32
		words := func(w ...uint32) (b []byte) {
			for _, x := range w {
				b = binary.BigEndian.AppendUint32(b, x)
			}
			return b
		}
		long := make([]uint32, 0, 1000)
		for range 160 {
			long = append(long, 1, 40, 7, 0, 0, 0)
		}
		for what, b := range map[string][]byte{
			"MSGP":                          words(2, 0, 0, 0),
			"an unknown procedure":          words(77, 0, 0, 0),
			"only the fixed part":           words(0),
			"cut in the Read list":          words(0, 1, 44, 7),
			"a list without an end":         words(0, 1, 44, 7, 8, 0, 0),
			"2^32-1 segments":               words(0, 0, 1, big, 0, 0),
			"2^32-1 segments of the Reply":  words(0, 0, 0, 1, big, 7, 8, 0, 0),
			"lengths above MaxCall":         words(0, 1, 44, 7, big, 0, 0, 1, 44, 7, big, 0, 0, 0, 0, 0),
			"a position that is not there":  words(0, 1, 4000, 7, 8, 0, 0, 0, 0, 0),
			"no multiple of 4":              words(0, 1, 42, 7, 8, 0, 0, 0, 0, 0),
			"not ascending":                 words(0, 1, 44, 7, 8, 0, 0, 1, 40, 7, 8, 0, 0, 0, 0, 0),
			"empty segments by the hundred": append(words(0), append(words(long...), words(0, 0, 0)...)...),
			"an offset that wraps":          words(0, 0, 1, 1, 7, 8, big, big-3, 0, 0),
			"NOMSG without a chunk":         words(1, 0, 0, 0),
			"a list goes on with 2":         words(0, 2, 44, 7, 8, 0, 0, 0, 0, 0),
		} {
			c.xid++
			c.send(words(c.xid, 1, 128), b, rpc(c.xid, 0))
			m := c.recv()
			require.Equal(t, wire.AppendChunkFailure(nil, c.xid, 32), m.octets, what)
		}
		c.untouched()
		c.serves()
	})
}

// TestRPR_18_NoHeader: a message shorter than the shortest header of a call is discarded, and its receive is posted again (RFC 8166
// section 4.5).
func TestRPR_18_NoHeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{Credits: 1})
		h := c.header().Append(nil)
		for n := range wire.MinLen {
			c.send(h[:n])
			synctest.Wait()
		}
		c.serves()
		require.EqualValues(t, 1, c.conn.qp.Stats().Sent.Send.Messages)
	})
}

// TestRPR_18_Garbage: a message that is no RPC call ends the connection, inline and in a chunk.
func TestRPR_18_Garbage(t *testing.T) {
	for what, change := range map[string]func(h *wire.Header) []byte{
		"39 octets":       func(h *wire.Header) []byte { return rpc(h.XID, 0)[:39] },
		"nothing":         func(*wire.Header) []byte { return nil },
		"a reply":         func(h *wire.Header) []byte { return append(accepted(h.XID), make([]byte, 40)...) },
		"an XID too many": func(h *wire.Header) []byte { return append([]byte{0, 0, 0, 0}, rpc(h.XID, 0)...) },
	} {
		for _, chunked := range []bool{false, true} {
			bubble(t, func(t *testing.T) {
				c := connected(t, Config{})
				h := c.header()
				body := change(h)
				if chunked {
					r := c.exposes(max(len(body)&^3, 4), false)
					copy(r.mem, body)
					h.Proc, h.Reads = wire.NoMsg, r.reads(0)
					body = nil
				}
				c.send(h.Append(nil), body)
				require.Error(t, c.ended(), what)
				synctest.Wait()
				require.Zero(t, c.conn.shared.calls.used, what)
			})
		}
	}
}

// TestRPR_18_AnotherXID: a call with another XID than its header is answered, inline and in a chunk (RFC 8166 section 4.5.2).
func TestRPR_18_AnotherXID(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		h := c.header()
		c.send(h.Append(nil), rpc(h.XID+1, 0))
		c.failure(h.XID, 2)
		h = c.header()
		r := c.exposes(40, false)
		copy(r.mem, rpc(h.XID+1, 0))
		h.Proc, h.Reads = wire.NoMsg, r.reads(0)
		c.send(h.Append(nil))
		c.failure(h.XID, 2)
		c.serves()
		require.Zero(t, c.conn.shared.calls.used)
	})
}

// TestRPR_17_DuplicateInFlight ends the connection, wherever the first call is.
func TestRPR_17_DuplicateInFlight(t *testing.T) {
	for what, first := range map[string]func(c *client, h *wire.Header) []byte{
		"ready":       func(_ *client, h *wire.Header) []byte { return append(h.Append(nil), rpc(h.XID, 0)...) },
		"handed over": func(_ *client, h *wire.Header) []byte { return append(h.Append(nil), rpc(h.XID, 0)...) },
		"being read": func(c *client, h *wire.Header) []byte {
			r, _ := c.stuck(1000)
			first := wire.Header{XID: h.XID, Proc: wire.NoMsg, Reads: r.reads(0)}
			return first.Append(nil)
		},
	} {
		bubble(t, func(t *testing.T) {
			c := connected(t, Config{})
			h := c.header()
			a := copy(c.mem, first(c, h))
			b := copy(c.mem[a:], append(h.Append(nil), rpc(h.XID, 0)...))
			wrs := []iwarp.SendWR{{Op: iwarp.OpSend, Local: []iwarp.SGE{c.out.Slice(0, a)}}, {Op: iwarp.OpSend, Local: []iwarp.SGE{c.out.Slice(a, b)}}}
			if what == "handed over" {
				require.NoError(t, c.qp.PostSend(wrs[0]))
				c.next()
				wrs = wrs[1:]
			}
			require.NoError(t, c.qp.PostSend(wrs...)) // together, since a client that does not answer sends nothing
			<-c.conn.Done()
			require.ErrorIs(t, c.conn.Err(), errDuplicate, what)
		})
	}
}

// TestRPR_17_XIDAgain: an XID may be used again after it was answered.
func TestRPR_17_XIDAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		for range 100 {
			c.serves()
			c.xid--
		}
		k := c.call()
		require.NoError(t, k.Reply(t.Context(), accepted(c.xid)))
		require.ErrorIs(t, k.Reply(t.Context(), accepted(c.xid)), errAnswered)
		k = c.call()
		require.ErrorIs(t, k.Reply(t.Context(), accepted(c.xid+1)), errOtherXID)
		require.Equal(t, wire.Msg, c.recv().header.Proc)
		c.failure(c.xid, 2)
	})
}

// call sends a call, and takes it.
func (c *client) call() *Call {
	c.Helper()
	h := c.header()
	c.send(h.Append(nil), rpc(h.XID, 0))
	return c.next()
}

// TestRPR_18_WrongHandles: a Read or a Write of memory that the client does not have ends its own connection.
func TestRPR_18_WrongHandles(t *testing.T) {
	wrong := wire.Segment{Handle: 0xdeadbeef, Length: 5000, Offset: 1 << 63}
	for _, reads := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			h := newHost(t, "pipe", Config{})
			c, other := h.connect(linux), h.connect(linux)
			call := c.header()
			if reads {
				call.Proc, call.Reads = wire.NoMsg, []wire.ReadSegment{{Segment: wrong}}
				c.send(call.Append(nil))
			} else {
				call.Reply, call.HasReply = wire.Chunk{wrong}, true
				c.send(call.Append(nil), rpc(call.XID, 17))
				c.reply(c.next(), accepted(call.XID), make([]byte, 4500))
			}
			require.Error(t, c.ended())
			other.serves()
		})
	}
}

// TestRPR_18_HugeReplyChunk: of 4 GiB only what the reply has is written.
func TestRPR_18_HugeReplyChunk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		r := c.exposes(6000, true)
		h := c.header()
		s := r.segment(0, 0)
		s.Length = math.MaxUint32
		h.Reply, h.HasReply = wire.Chunk{s, s, s}, true
		c.send(h.Append(nil), rpc(h.XID, 17))
		msg := append(accepted(h.XID), octets(1, 5000)...)
		c.reply(c.next(), msg)
		m := c.recv()
		require.Equal(t, msg, r.mem[:len(msg)])
		require.EqualValues(t, []uint32{5024, 0, 0}, []uint32{m.header.Reply[0].Length, m.header.Reply[1].Length, m.header.Reply[2].Length})
	})
}

// A stuck is memory of a client that does not answer RDMA Reads.
type stuck struct {
	size    int64
	release chan struct{}
}

func (s *stuck) Size() int64                            { return s.size }
func (s *stuck) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (s *stuck) ReadAt(p []byte, _ int64) (int, error) {
	<-s.release
	return len(p), nil
}

// stuck registers such memory. The function that it returns makes the client answer.
func (c *client) stuck(n int) (*region, func()) {
	c.Helper()
	s := &stuck{size: int64(n), release: make(chan struct{})}
	mr, err := c.pd.RegisterBuffer(s, stag.LocalWrite|stag.RemoteRead, &iwarp.MROptions{BaseTO: regionTO})
	require.NoError(c, err)
	release := sync.OnceFunc(func() { close(s.release) })
	c.Cleanup(release)
	return &region{mr: mr, mem: make([]byte, n)}, release
}

// noReceives makes a client read nothing from its connection once a message has come.
func noReceives(q *iwarp.QPConfig) {
	q.Setup, q.RNRWait = nil, time.Hour
}

// TestRPR_15_ReadsNotAnswered: after a minute the connection ends, and everything is released.
func TestRPR_15_ReadsNotAnswered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHost(t, "pipe", Config{})
		c, other := h.connect(linux), h.connect(linux)
		r, release := c.stuck(100000)
		call := c.header()
		call.Proc, call.Reads = wire.NoMsg, r.reads(0)
		began := time.Now()
		c.send(call.Append(nil))
		<-c.conn.Done()
		require.ErrorIs(t, c.conn.Err(), errTimeout)
		release()
		require.InDelta(t, patience.Seconds(), time.Since(began).Seconds(), 3)
		require.Zero(t, c.conn.shared.calls.used)
		require.Zero(t, c.conn.shared.calls.kept)
		other.serves()
	})
}

// TestRPR_15_RepliesNotRead: likewise a client that reads nothing.
func TestRPR_15_RepliesNotRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newHost(t, "pipe", Config{}).connect(linux, noReceives)
		r := c.exposes(1<<20, false)
		var calls []*Call
		for range 32 {
			h := c.header()
			h.Reply, h.HasReply = r.chunk(), true
			c.send(h.Append(nil), rpc(h.XID, 17))
			calls = append(calls, c.next())
		}
		for i, k := range calls {
			if err := k.Reply(t.Context(), accepted(k.rpc.XID), make([]byte, 1<<19)); err != nil {
				require.ErrorIs(t, err, errTimeout)
				require.Positive(t, i)
			}
		}
		<-c.conn.Done() // the client, which reads nothing, does not notice
		require.ErrorIs(t, c.conn.Err(), errTimeout)
		require.Zero(t, c.conn.replies.used)
		require.Zero(t, c.conn.replies.kept)
	})
}

// TestRPR_13_NoRemoteRights: a client that knows an STag of this side cannot write there, and cannot read at all.
func TestRPR_13_NoRemoteRights(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHost(t, "pipe", Config{})
		for i := range 4 {
			c := h.connect(linux)
			mrs := c.allRegions()
			require.Len(t, mrs, 4, "receives, replies, and memory of a call and of a long reply")
			require.NoError(t, c.qp.RDMAWrite(t.Context(), mrs[i].Advertise(0, 8), c.exposes(8, false).mr.Slice(0, 8)))
			require.ErrorIs(t, c.ended(), iwarp.ErrAccess, "region %d", i)
			require.Zero(t, c.conn.qp.IRD())
		}
	})
}

// TestRPR_13_NothingCanBeRead, not even by a QP of the same PD that serves RDMA Reads.
func TestRPR_13_NothingCanBeRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHost(t, "pipe", Config{})
		for i := range 4 {
			c := h.connect(linux)
			mr := c.allRegions()[i]
			serves := make(chan *iwarp.QP, 1)
			go func() {
				cr, err := h.l.Accept(within(t))
				if err == nil {
					qp, _ := cr.Accept(within(t), &iwarp.QPConfig{PD: c.conn.home.pd})
					serves <- qp
				}
			}()
			reader, err := h.dial(linux, func(q *iwarp.QPConfig) { q.ORD = 1 })
			require.NoError(t, err)
			require.Error(t, reader.qp.RDMARead(within(t), reader.exposes(8, false).mr.Slice(0, 8), mr.Advertise(0, 8)))
			qp := <-serves
			<-qp.Done()
			require.ErrorIs(t, qp.Err(), iwarp.ErrAccess, "region %d", i)
		}
	})
}

// TestRPR_13_22_RightsOfAClientsMemory: the server can only read the argument of a call, and only write to the memory of its reply.
func TestRPR_13_22_RightsOfAClientsMemory(t *testing.T) {
	peerMemory := func(s wire.Segment) iwarp.RemoteBuffer {
		return iwarp.RemoteBuffer{STag: stag.STag(s.Handle), TO: s.Offset, Len: s.Length}
	}
	for what, breaks := range map[string]func(s *scripted, h *wire.Header) error{
		"a Write to the argument": func(s *scripted, h *wire.Header) error {
			return s.qp.RDMAWrite(within(s.TB), peerMemory(h.Reads[0].Segment), s.out.Slice(0, 8))
		},
		"a Read of the memory for the result": func(s *scripted, h *wire.Header) error {
			return s.qp.RDMARead(within(s.TB), s.in.Slice(0, 8), peerMemory(h.Writes[0][0]))
		},
		"a Read of the memory for the reply": func(s *scripted, h *wire.Header) error {
			return s.qp.RDMARead(within(s.TB), s.in.Slice(0, 8), peerMemory(h.Reply[0]))
		},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newScripted(t)
				go func() { _ = breaks(s, s.recv()) }()
				data := make([]byte, 10000)
				r := &Request{Head: rpc(5, procRead, opaque(data)[:4]...), Data: data, Result: make([]byte, 10000), MaxReply: 20000}
				_, err := s.client.Do(within(t), r)
				require.ErrorIs(t, err, net.ErrClosed)
				<-s.client.Done()
				require.ErrorIs(t, s.client.QP().Err(), iwarp.ErrAccess)
			})
		})
	}
}

// allRegions makes the connection use each kind of region, and returns all its regions.
func (c *client) allRegions() (all []*iwarp.MR) {
	c.Helper()
	r := c.exposes(10000, true)
	h := c.header()
	h.Proc, h.Reads = wire.NoMsg, r.reads(0)
	copy(r.mem, rpc(h.XID, 17))
	h.Reply, h.HasReply = r.chunk(), true
	c.send(h.Append(nil))
	c.reply(c.next(), accepted(h.XID), make([]byte, 5000))
	c.recv()
	synctest.Wait()
	all = append(all, c.conn.recvMR, c.conn.outMR)
	for _, m := range slices.Concat(c.conn.callMemory.idle, c.conn.replyMemory.idle) {
		all = append(all, m.mr)
	}
	return all
}
