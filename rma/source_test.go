package rma

import (
	"net"
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

// suite0 is a plan without keys.
func suite0() plan { return suites()["suite 0"] }

// source posts a write whose octets the server reads itself.
func source(t *testing.T, r *raw, h *Handle, p *Portal) (id_ op.ID, q wire.WriteReq) {
	t.Helper()
	posts(t, p, Command{Op: Write, Handle: h, Buf: octets(1, 16)})
	msg := r.receives(wire.TypeWriteReq)
	require.NoError(t, q.Parse(msg, 0))
	require.NotZero(t, q.SourceSTag)
	return id(msg), q
}

// pullsSource sends a PULL that names no sink, and reads the source.
func (r *raw) pullsSource(id op.ID, q wire.WriteReq, salt byte) ([]byte, error) {
	pull := wire.Pull{Salt: [16]byte{salt}, Length: q.Length, Timeout: 300 * time.Millisecond}
	r.sends(pull.Append(nil, r.header(id), r.out))
	from := iwarp.RemoteBuffer{STag: stag.STag(q.SourceSTag), TO: q.SourceTO, Len: q.Length}
	err := r.qp.RDMARead(r.context(), r.mr.Slice(8192, int(q.Length)), from)
	return append([]byte(nil), r.mem[8192:8192+q.Length]...), err
}

// finishesSource sends WRITE_DONE, which invalidates the source.
func (r *raw) finishesSource(id op.ID, q wire.WriteReq, salt byte) {
	m := wire.WriteDone{Salt: [16]byte{salt}, Length: q.Length, Epoch: 1}
	msg := m.Append(nil, r.header(id), r.out)
	copy(r.mem, msg)
	require.NoError(r, r.qp.SendInvalidate(r.context(), stag.STag(q.SourceSTag), r.mr.Slice(0, len(msg))))
}

// TestRMA_37_SourceIsReadOnce: by the server, until it sends WRITE_DONE.
func TestRMA_37_SourceIsReadOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r, h, p := asks(t, suite0(), 0)
		id, q := source(t, r, h, p)
		got, err := r.pullsSource(id, q, 1)
		require.NoError(t, err)
		require.Equal(t, octets(1, 16), got)
		r.finishesSource(id, q, 1)
		require.NoError(t, p.ended(t).Err)
		_, err = r.pullsSource(id, q, 1)
		require.Error(t, err, "the STag is invalid")
		w.close()
	})
}

// TestRMA_37_SourceIsRevokedFirst: without a PULL in time, the source becomes invalid before the
// timeout is reported.
func TestRMA_37_SourceIsRevokedFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r, h, p := asks(t, suite0(), 0)
		begun := time.Now()
		id, q := source(t, r, h, p)
		require.ErrorIs(t, p.ended(t).Err, ErrTimeout)
		require.Equal(t, time.Second, time.Since(begun))
		_, err := r.pullsSource(id, q, 1)
		require.Error(t, err)
		w.close()
	})
	bubble(t, func(t *testing.T) {
		// After a PULL the time is Ts plus the guard.
		w, r, h, p := asks(t, suite0(), 0)
		id, q := source(t, r, h, p)
		time.Sleep(time.Second - time.Nanosecond)
		_, err := r.pullsSource(id, q, 1)
		require.NoError(t, err)
		begun := time.Now()
		require.ErrorIs(t, p.ended(t).Err, ErrTimeout)
		require.Equal(t, 400*time.Millisecond, time.Since(begun))
		w.close()
	})
}

// TestRMA_37_PullThatHasComeCounts: a PULL that the QP received before the timer ran out is found,
// although it has not been handled yet.
func TestRMA_37_PullThatHasComeCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r, h, p := asks(t, suite0(), 0)
		id, q := source(t, r, h, p)
		c := w.client.c
		time.Sleep(time.Second - time.Nanosecond)
		c.mu.Lock() // the goroutine of the connection gets no further than this
		_, err := r.pullsSource(id, q, 1)
		require.NoError(t, err)
		c.clientDo = c.asClient.Tick(c.clientDo, time.Now().Add(time.Nanosecond))
		c.leave()
		synctest.Wait()
		require.Zero(t, p.Poll(make([]Completion, 1)), "the source was revoked, and then the PULL was found")
		r.finishesLate(id, 1)
		require.NoError(t, p.ended(t).Err)
		w.close()
	})
}

// TestRMA_19_37_PullThatIsNotHeard: when this side ends the connection, for any reason, a PULL may have come
// that it does not read any more. The server may have the octets, and as long as it may use them, no
// outcome is reported.
func TestRMA_19_37_PullThatIsNotHeard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r, h, p := asks(t, suite0(), 0)
		id, q := source(t, r, h, p)
		c := w.client.c
		c.mu.Lock() // the goroutine of the connection gets no further than this
		m := wire.Status{Code: op.NACK}
		r.sends(m.Append(nil, wire.Header{Ctr: 99, Op: id}, r.out)) // for this it ends the connection
		got, err := r.pullsSource(id, q, 1)
		require.NoError(t, err)
		require.Equal(t, octets(1, 16), got)
		begun := time.Now()
		c.mu.Unlock()
		end := p.ended(t)
		require.ErrorIs(t, end.Err, ErrTimeout)
		require.ErrorIs(t, end.Err, net.ErrClosed)
		require.Equal(t, 600*time.Millisecond, time.Since(begun), "the time of the server, and the guard")
		w.close()
	})
}

// finishesLate sends WRITE_DONE for a source that is invalid.
func (r *raw) finishesLate(id op.ID, salt byte) {
	m := wire.WriteDone{Salt: [16]byte{salt}, Length: 16, Epoch: 1}
	r.sends(m.Append(nil, r.header(id), r.out))
}

// TestKEY_13_DirectRead: it may change the buffer when it fails, and without keys its sink is the buffer.
func TestKEY_13_DirectRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r, h, p := asks(t, plan{}, 0)
		buf := make([]byte, 16)
		posts(t, p, Command{Op: Read, Handle: h, Buf: buf, Direct: true})
		r.serves(r.receives(wire.TypeReadReq), octets(1, 16), nil)
		require.NoError(t, p.ended(t).Err)
		require.Equal(t, octets(1, 16), buf)
		posts(t, p, Command{Op: Read, Handle: h, Buf: buf, Direct: true})
		r.serves(r.receives(wire.TypeReadReq), octets(5, 16), func(b []byte) { b[0] ^= 1 })
		require.ErrorIs(t, p.ended(t).Err, ErrRemoteAuth)
		w.close()
	})
	bubble(t, func(t *testing.T) {
		w, r, h, p := asks(t, suite0(), 250*time.Millisecond)
		buf := make([]byte, 16)
		posts(t, p, Command{Op: Read, Handle: h, Buf: buf, Direct: true})
		msg := r.receives(wire.TypeReadReq)
		require.ErrorIs(t, p.ended(t).Err, ErrTimeout)
		require.Zero(t, w.client.c.solicitor.Stats().Granted, "without Linger")
		var q wire.ReadReq
		require.NoError(t, q.Parse(msg))
		copy(r.mem[8192:], octets(1, 16))
		to := iwarp.RemoteBuffer{STag: stag.STag(q.SinkSTag), TO: q.SinkTO, Len: 16}
		_ = r.qp.RDMAWrite(r.context(), to, r.mr.Slice(8192, 16))
		<-w.client.Done()
		require.Equal(t, make([]byte, 16), buf, "the STag is invalid")
		w.close()
	})
}

// TestRMA_37_ServerOfSources: it reads no longer than its timer allows.
func TestRMA_37_ServerOfSources(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := plays(t, suite0())
		q := wire.WriteReq{Region: regionID, Epoch: 1, Length: 16, SourceSTag: 0x1234500}
		r.sends(q.Append(nil, r.header(2), r.out, nil))
		r.receives(wire.TypePull)
		<-r.qp.Done() // the RDMA Read names an STag that does not exist
		require.Error(t, <-w.served)
		w.served = nil
		w.wantNothingLeft()
	})
	bubble(t, func(t *testing.T) {
		w, r := plays(t, suite0())
		q := wire.ReadReq{Region: regionID, Epoch: 1, Length: 16, Offset: 1 << 20, SinkSTag: 1, TTL: time.Second}
		r.sends(q.Append(nil, r.header(2), r.out, nil))
		_, _, err := r.next()
		require.Error(t, err, "it invalidates an STag that there is not")
		require.Error(t, <-w.served)
		w.served = nil
		w.wantNothingLeft()
	})
}

// TestKEY_4_NoSecretWithoutKeys: a Rekey with a secret in clear ends the connection, and the region keeps its key.
func TestKEY_4_NoSecretWithoutKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := plays(t, suite0())
		q := wire.RekeyReq{Region: regionID, Epoch: 1, Next: 2}
		msg := q.Append(nil, r.header(2), r.out, nil)
		copy(msg[48:80], octets(1, 32))
		r.sends(msg)
		r.wantEnd(w, "secret")
		require.Equal(t, regionkey.Epoch(1), w.region.Epoch())
		w.wantNothingLeft()
	})
}

// writesFromAStuckSource requests a write of n octets, and does not answer the server's RDMA Read of them.
func (r *raw) writesFromAStuckSource(n int) *stuck {
	s := &stuck{Memory: NewMemory(make([]byte, n)), entered: make(chan struct{}), go_: make(chan struct{})}
	mr, err := r.pd.RegisterBuffer(s, stag.RemoteRead, nil)
	require.NoError(r, err)
	from := mr.Advertise(0, n)
	q := wire.WriteReq{Region: regionID, Epoch: 1, Length: uint32(n), SourceSTag: uint32(from.STag), SourceTO: from.TO}
	r.sends(q.Append(nil, r.header(2), r.out, nil))
	r.receives(wire.TypePull)
	s.wait()
	return s
}

// TestServeEndsWithoutTheOctetsOfASource: the client never sends them, and the timeout of the write ends the wait for them.
func TestServeEndsWithoutTheOctetsOfASource(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := plays(t, suite0())
		s := r.writesFromAStuckSource(16)
		begun := time.Now()
		w.stop()
		require.Error(t, <-w.served)
		w.served = nil
		require.Less(t, time.Since(begun), 10*time.Second)
		s.release()
		w.wantNothingLeft()
	})
}

// TestRMA_24_39_SourceThatNeverComes: a client lends the source of a write, and never answers the RDMA Read. The window gets the
// octets back after Linger, with the end of the connection, and other clients continue.
func TestRMA_24_39_SourceThatNeverComes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := suite0()
		p.server.Solicitor = fixed(t, 4096+64)
		w, r := plays(t, p)
		good := w.another()
		good.serve()
		var err error
		good.client, err = NewClient(good.context(), good.qps[0], &good.plan.client)
		require.NoError(t, err)
		write := Command{Op: Write, Handle: good.opens(), Buf: octets(1, 4096)}
		portal := good.portal(1)
		s := r.writesFromAStuckSource(4096)
		require.ErrorIs(t, does(t, portal, write).Err, ErrNACK, "the window is full")
		begun := time.Now()
		err = <-w.served
		w.served = nil
		require.ErrorContains(t, err, "the octets of a write have not come in time")
		require.Less(t, time.Since(begun), 10*time.Second)
		require.Zero(t, p.server.Solicitor.Stats().Granted)
		require.NoError(t, does(t, portal, write).Err)
		s.release()
		require.NoError(t, good.client.Close())
		require.NoError(t, <-good.served)
		w.wantNothingLeft()
	})
}
