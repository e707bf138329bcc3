package rpcrdma

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

// marked returns a record in fragments of some lengths, and one of the rest.
func marked(msg []byte, fragments ...int) (b []byte) {
	for _, n := range fragments {
		b = append(binary.BigEndian.AppendUint32(b, uint32(n)), msg[:n]...)
		msg = msg[n:]
	}
	return append(binary.BigEndian.AppendUint32(b, 1<<31|uint32(len(msg))), msg...)
}

// TestRPR_16_ReadCuts: calls come as records, to a reader that takes any number of octets.
func TestRPR_16_ReadCuts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		s := c.conn.Records()
		r := c.exposes(300, true)
		copy(r.mem, octets(1, 300))
		for size := 1; size < 60; size++ {
			h := c.header()
			call := rpc(h.XID, 1, octets(9, 8)...)
			if size%2 == 0 {
				call = rpc(h.XID, 7, opaque(r.mem)...)
				big := c.exposes(300, true)
				copy(big.mem, r.mem)
				h.Reads = big.reads(wire.CallLen+4, 100)
				c.send(h.Append(nil), call[:wire.CallLen+4])
			} else {
				c.send(h.Append(nil), call)
			}
			var got []byte
			for len(got) < 4+len(call) {
				b := make([]byte, size)
				n, err := s.Read(b)
				require.NoError(t, err)
				require.Positive(t, n)
				got = append(got, b[:n]...)
			}
			require.Equal(t, marked(call), got)
			synctest.Wait()
			require.Zero(t, c.conn.shared.calls.used, "its memory is given back when it was read")
			_, err := s.Write(marked(accepted(h.XID)))
			require.NoError(t, err)
			require.Equal(t, accepted(h.XID), c.recv().body)
		}
	})
}

// TestRPR_16_WriteCuts: replies are written cut at every octet, in one fragment and in several.
func TestRPR_16_WriteCuts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		s := c.conn.Records()
		msg := append(accepted(0), octets(1, 20)...)
		for _, fragments := range [][]int{nil, {0}, {4, 0, 3}, {1, 1, 1, 1}, {44}} {
			for cut := range len(marked(msg, fragments...)) + 1 {
				h := c.header()
				c.send(h.Append(nil), rpc(h.XID, 0))
				_, err := io.ReadFull(s, make([]byte, 44))
				require.NoError(t, err)
				binary.BigEndian.PutUint32(msg, h.XID)
				b := marked(msg, fragments...)
				for _, part := range [][]byte{b[:cut], b[cut:]} {
					n, err := s.Write(part)
					require.NoError(t, err)
					require.Equal(t, len(part), n)
				}
				require.Equal(t, msg, c.recv().body, "%v, cut at %d", fragments, cut)
			}
		}
		h := c.header()
		c.send(h.Append(nil), rpc(h.XID, 0))
		_, err := io.ReadFull(s, make([]byte, 44))
		require.NoError(t, err)
		for _, o := range marked(accepted(h.XID), 3, 0) {
			n, err := s.Write([]byte{o})
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
		require.Equal(t, accepted(h.XID), c.recv().body)
	})
}

// TestRPR_16_TwoRecordsInOneWrite, with the beginning of a third.
func TestRPR_16_TwoRecordsInOneWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		s := c.conn.Records()
		var all []byte
		for range 3 {
			h := c.header()
			c.send(h.Append(nil), rpc(h.XID, 0))
			_, err := io.ReadFull(s, make([]byte, 44))
			require.NoError(t, err)
			all = append(marked(accepted(h.XID)), all...) // in another order than the calls
		}
		_, err := s.Write(all[:60])
		require.NoError(t, err)
		_, err = s.Write(all[60:])
		require.NoError(t, err)
		for i := range uint32(3) {
			require.Equal(t, c.xid-i, c.recv().header.XID)
		}
	})
}

// TestRPR_16_LongReplies go by the chunks of the call, in one fragment and in several. A reply that does not fit
// becomes an error of the transport, and Write does not fail.
func TestRPR_16_LongReplies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{MaxBytes: 20 << 20})
		s := c.conn.Records()
		for _, fragments := range [][]int{nil, {100000, 7}} {
			data := c.exposes(1<<20, true)
			h := c.header()
			h.Writes = []wire.Chunk{data.chunk()}
			c.send(h.Append(nil), rpc(h.XID, 6))
			_, err := io.ReadFull(s, make([]byte, 44))
			require.NoError(t, err)
			_, err = s.Write(marked(readReply(h.XID, octets(3, 1<<20)), fragments...))
			require.NoError(t, err)
			c.recv()
			require.Equal(t, octets(3, 1<<20), data.mem)

			for _, n := range []int{200000, 3 << 20} {
				h := c.header()
				c.send(h.Append(nil), rpc(h.XID, 6))
				_, err := io.ReadFull(s, make([]byte, 44))
				require.NoError(t, err)
				b := marked(readReply(h.XID, make([]byte, n)), fragments...)
				for _, part := range [][]byte{b[:markLen+2], b[markLen+2:]} { // cut within the XID
					_, err = s.Write(part)
					require.NoError(t, err)
				}
				c.failure(h.XID, 2)
			}
		}
	})
}

// TestRPR_14_16_FragmentsTogetherAreBounded: no more is kept of a record than a reply may have.
func TestRPR_14_16_FragmentsTogetherAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{MaxBytes: 20 << 20})
		s := c.conn.Records()
		limit := c.conn.cfg.maxReply()
		h := c.header()
		c.send(h.Append(nil), rpc(h.XID, 6))
		_, err := io.ReadFull(s, make([]byte, 44))
		require.NoError(t, err)
		b := marked(append(accepted(h.XID), make([]byte, 3*limit/2)...), limit/2, limit/2, limit/4)
		end := len(b) - 8
		_, err = s.Write(b[:end])
		require.NoError(t, err)
		require.LessOrEqual(t, len(s.(*records).out.octets), limit)
		_, err = s.Write(b[end:])
		require.NoError(t, err)
		c.failure(h.XID, 2)
		require.LessOrEqual(t, cap(s.(*records).out.octets), keptRecord, "what stays for the next one")
	})
}

// TestRPR_17_RecordsOfNoCall: a reply to no call is an error of Write, and the next reply is sent.
func TestRPR_17_RecordsOfNoCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{Credits: 2}) // and as many places for replies
		s := c.conn.Records()
		h := c.header()
		c.send(h.Append(nil), rpc(h.XID, 0))
		_, err := s.Read(make([]byte, 43))
		require.NoError(t, err)
		for what, b := range map[string][]byte{
			"another XID":                 marked(accepted(h.XID + 1)),
			"an empty record":             marked(nil),
			"an empty record, in two":     marked(nil, 0),
			"three octets":                marked([]byte{1, 2, 3}),
			"a call that is not read yet": marked(accepted(h.XID)),
		} {
			_, err := s.Write(b)
			require.ErrorIs(t, err, errNoCall, what)
		}
		n, err := s.Read(make([]byte, 43))
		require.NoError(t, err)
		require.Equal(t, 1, n)
		_, err = s.Write(marked(accepted(h.XID)))
		require.NoError(t, err)
		require.Equal(t, accepted(h.XID), c.recv().body)
		_, err = s.Write(marked(accepted(h.XID)))
		require.ErrorIs(t, err, errNoCall, "it was answered")
	})
}

// TestRPR_16_Deadlines: they end waits that have begun, and can be removed.
func TestRPR_16_Deadlines(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		s := c.conn.Records()
		require.NoError(t, s.SetReadDeadline(time.Now().Add(time.Second)))
		_, err := s.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		_, err = s.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "it has passed")
		require.NoError(t, s.SetReadDeadline(time.Time{}))
		failed := make(chan error, 1)
		go func() {
			_, err := s.Read(make([]byte, 1))
			failed <- err
		}()
		synctest.Wait()
		require.NoError(t, s.SetDeadline(time.Now().Add(-time.Second)))
		require.ErrorIs(t, <-failed, os.ErrDeadlineExceeded)
		_, err = s.Write([]byte{0})
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, s.SetDeadline(time.Now().Add(time.Hour)))
		h := c.header()
		c.send(h.Append(nil), rpc(h.XID, 0))
		_, err = io.ReadFull(s, make([]byte, 44))
		require.NoError(t, err)
		require.NoError(t, s.SetWriteDeadline(time.Time{}))
		_, err = s.Write(marked(accepted(h.XID)))
		require.NoError(t, err)
		require.Equal(t, accepted(h.XID), c.recv().body)
		require.Equal(t, c.conn.LocalAddr(), s.LocalAddr())
		require.Equal(t, c.conn.RemoteAddr(), s.RemoteAddr())
		require.NotNil(t, s.RemoteAddr())
	})
}

// TestRPR_16_WriteDeadline: a Write that waits for memory ends, and a later Write continues where it stopped.
func TestRPR_16_WriteDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHost(t, "pipe", Config{MaxBytes: 16 << 20})
		c := h.connect(linux, noReceives)
		s := c.conn.Records()
		r := c.exposes(1<<20, false)
		call := func() []byte {
			h := c.header()
			h.Reply, h.HasReply = r.chunk(), true
			c.send(h.Append(nil), rpc(h.XID, 17))
			_, err := io.ReadFull(s, make([]byte, 44))
			require.NoError(t, err)
			return marked(append(accepted(h.XID), make([]byte, 1<<20-100)...))
		}
		for range 10 {
			b := call()
			require.NoError(t, s.SetWriteDeadline(time.Now().Add(time.Second)))
			n, err := s.Write(b)
			if err == nil {
				continue
			}
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.Equal(t, 4, n, "the mark")
			require.NoError(t, s.SetWriteDeadline(time.Time{}))
			_, err = s.Write(b[n:])
			require.ErrorIs(t, err, net.ErrClosed, "the client does not read")
			require.ErrorIs(t, err, errTimeout)
			return
		}
		require.Fail(t, "ten replies of 1 MiB, where there is memory for two")
	})
}

// TestRPR_16_Close ends Read and Write, and releases everything.
func TestRPR_16_Close(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		s := c.conn.Records()
		r := c.exposes(10000, false)
		copy(r.mem, rpc(1, 7))
		c.send((&wire.Header{XID: 1, Proc: wire.NoMsg, Reads: r.reads(0)}).Append(nil))
		_, err := s.Read(make([]byte, 100))
		require.NoError(t, err, "a call that is being read")
		c.send((&wire.Header{XID: 2}).Append(nil), rpc(2, 0))
		_, err = s.Write(append([]byte{0x80, 0, 0xff, 0}, 1, 2, 3))
		require.NoError(t, err, "a reply that is being written")
		synctest.Wait()
		require.NoError(t, s.Close())
		require.NoError(t, c.ended())
		c.conn.nothingLeft(t)
		require.NoError(t, s.Close())
		_, err = s.Read(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = s.Write(marked(accepted(1)))
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// nothingLeft checks that a connection which has ended has released everything.
func (c *Conn) nothingLeft(t *testing.T) {
	t.Helper()
	synctest.Wait()
	for _, p := range []*pool{c.shared.calls, c.replies} {
		require.Zero(t, p.used)
		require.Zero(t, p.kept)
		require.Equal(t, &p.waits, p.waits.next)
	}
	require.Zero(t, c.home.uses.Load(), "the PD is closed")
}

// TestRPR_16_ClientEnds: Read returns io.EOF after a graceful end, and the error of another one.
func TestRPR_16_ClientEnds(t *testing.T) {
	for _, graceful := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			c := connected(t, Config{})
			s := c.conn.Records()
			r := c.exposes(10000, false)
			copy(r.mem, rpc(1, 7))
			c.send((&wire.Header{XID: 1, Proc: wire.NoMsg, Reads: r.reads(0)}).Append(nil))
			_, err := s.Read(make([]byte, 100))
			require.NoError(t, err)
			if graceful {
				require.NoError(t, c.qp.Close())
			} else {
				require.NoError(t, c.qp.Abort())
			}
			<-c.conn.Done()
			_, err = s.Read(make([]byte, 100))
			if graceful {
				require.ErrorIs(t, err, io.EOF)
			} else {
				require.ErrorIs(t, err, net.ErrClosed)
			}
			_, err = s.Write(marked(accepted(1)))
			require.ErrorIs(t, err, net.ErrClosed)
			c.conn.nothingLeft(t)
		})
	}
}

// FuzzRecords: whatever is written, however it is cut, is taken as the records that it contains.
func FuzzRecords(f *testing.F) {
	f.Add(marked(append(accepted(1), 1, 2, 3)), 5)
	f.Add(slices.Concat(marked(accepted(1), 3, 0), marked(accepted(2))), 1)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1}, 3)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		cut = max(1, min(cut, 1000))
		synctest.Test(t, func(t *testing.T) {
			c := connected(t, Config{MaxBytes: 16 << 20})
			s := c.conn.Records()
			for xid := range uint32(3) {
				c.send((&wire.Header{XID: xid}).Append(nil), rpc(xid, 0))
				_, err := io.ReadFull(s, make([]byte, 44))
				require.NoError(t, err)
			}
			for part := range slices.Chunk(b, cut) {
				n, err := s.Write(part)
				if err != nil {
					require.ErrorIs(t, err, errNoCall)
					continue
				}
				require.Equal(t, len(part), n)
			}
			require.NoError(t, s.Close())
			c.conn.nothingLeft(t)
		})
	})
}
