package rma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

// A slowPart is a Buffer in which reads at or after an offset block.
type slowPart struct {
	*stuck
	from int64
}

func (b slowPart) ReadAt(p []byte, off int64) (int, error) {
	if off < b.from {
		return b.Memory.ReadAt(p, off)
	}
	return b.stuck.ReadAt(p, off)
}

// slowFrom makes reads of the region at or after an offset block until release.
func (w *pair) slowFrom(off int64) *stuck {
	s := w.stall()
	w.region.mu.Lock()
	defer w.region.mu.Unlock()
	w.region.buf = slowPart{s, off}
	return s
}

// readReq returns a request to read 16 octets.
func (r *raw) readReq(id op.ID, off uint64) iwarp.SendWR {
	r.Helper()
	_, tag := r.sink(16 + regionkey.TagSize)
	q := wire.ReadReq{Region: regionID, Epoch: 1, Length: 16, Offset: off, SinkSTag: uint32(tag), TTL: time.Second}
	return iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: q.Append(nil, r.header(id), r.out, r.sealer(regionkey.Read, regionkey.Initiator))}
}

// puts writes octets to the sink of a PULL, and sends DATA. There are no keys.
func (r *raw) puts(id op.ID, pull wire.Pull, plain []byte) {
	r.Helper()
	n := copy(r.mem[8192:], plain)
	to := iwarp.RemoteBuffer{STag: stag.STag(pull.SinkSTag), TO: pull.SinkTO, Len: uint32(n)}
	require.NoError(r, r.qp.RDMAWrite(r.context(), to, r.mr.Slice(8192, n)))
	m := wire.Data{Length: uint32(n)}
	r.invalidates(m.Append(nil, r.header(id), r.out), pull.SinkSTag)
}

// TestRMA_24_SourceThatCameWhileABufferWorked: the server notices late that it has the octets. This is not the client's fault,
// and the next write, which reuses the record and its sink, succeeds.
func TestRMA_24_SourceThatCameWhileABufferWorked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := plays(t, suite0())
		r.puts(2, r.pulls(2, 16), octets(2, 16))
		r.receives(wire.TypeWriteDone)
		s := w.slowFrom(4096)
		mr, err := r.pd.RegisterMR(octets(1, 16), stag.RemoteRead, &iwarp.MROptions{QP: r.qp})
		require.NoError(t, err)
		from := mr.Advertise(0, 16)
		q := wire.WriteReq{Region: regionID, Epoch: 1, Length: 16, SourceSTag: uint32(from.STag), SourceTO: from.TO}
		write := iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: q.Append(nil, r.header(3), r.out, nil)}
		require.NoError(t, r.qp.PostSend(write, r.readReq(4, 4096)))
		r.receives(wire.TypePull)
		s.wait()
		time.Sleep(2 * (defaultPullTimeout + defaultLinger))
		r.asksToWrite(5, 16)
		synctest.Wait() // the request has come, too
		s.release()
		r.wantStatus(op.NACK, op.TooLate)
		var pull wire.Pull
		require.NoError(t, pull.Parse(r.receives(wire.TypePull), r.suite))
		require.Equal(t, octets(2, 16), w.mem.b[:16], "it was too late for the write")
		r.puts(5, pull, octets(5, 16))
		r.receives(wire.TypeWriteDone)
		require.Equal(t, octets(5, 16), w.mem.b[:16])
		require.Zero(t, w.server.solicitor.Stats().Granted)
		r.ends(w)
	})
}

// TestRMA_42_ClientThatReadsWhileABufferWorks: the server notices only minutes later that the octets of the first read were sent.
func TestRMA_42_ClientThatReadsWhileABufferWorks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := plays(t, plan{})
		s := w.slowFrom(4096)
		require.NoError(t, r.qp.PostSend(r.readReq(2, 0), r.readReq(3, 4096)))
		r.receives(wire.TypeReadDone)
		s.wait()
		time.Sleep(3 * maxOpTimeout)
		s.release()
		r.wantStatus(op.NACK, op.TooLate)
		require.NoError(t, r.qp.PostSend(r.readReq(4, 0)))
		r.receives(wire.TypeReadDone)
		r.ends(w)
	})
}
