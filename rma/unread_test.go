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

// sinkThatStalls makes a sink of a peer whose part the test plays: when the first octets reach the sink, the peer stops reading.
func (r *raw) sinkThatStalls(n int) (*stuck, iwarp.RemoteBuffer) {
	r.Helper()
	s := &stuck{Memory: NewMemory(make([]byte, n)), entered: make(chan struct{}), go_: make(chan struct{})}
	mr, err := r.pd.RegisterBuffer(s, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{QP: r.qp})
	require.NoError(r, err)
	return s, mr.Advertise(0, n)
}

// posts sends a message without waiting until it has been sent.
func (r *raw) posts(msg []byte) {
	r.Helper()
	require.NoError(r, r.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: msg}))
}

// takesNothing makes the client send more than the connection can buffer, from now on until release. Its writes time out
// before reads do.
func (r *raw) takesNothing(t *testing.T, h *Handle, p *Portal, size int) (s *stuck, writes int) {
	t.Helper()
	s, sink := r.sinkThatStalls(size + regionkey.TagSize)
	var asked []op.ID
	for range 6 {
		posts(t, p, Command{Op: Write, Handle: h, Buf: make([]byte, size)})
		asked = append(asked, id(r.receives(wire.TypeWriteReq)))
	}
	to := uint32(sink.STag)
	for _, o := range asked {
		m := wire.Pull{Length: uint32(size), Timeout: 300 * time.Millisecond, SinkSTag: to}
		r.posts(m.Append(nil, r.header(o), r.out))
		_, next := r.sink(size + regionkey.TagSize)
		to = uint32(next)
	}
	s.wait()
	synctest.Wait() // all octets are posted
	return s, len(asked)
}

// TestRMA_24_39_ServerThatDoesNotRead: when the connection accepts nothing any more, the client's grants still return after
// Linger.
func TestRMA_24_39_ServerThatDoesNotRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const size = wire.MaxMaxOp
		window := fixed(t, 1<<20)
		w := newPair(t, plan{client: ClientConfig{MaxOp: size, Solicitor: window}})
		r, h, _ := w.playedWith(250*time.Millisecond, size)
		p := w.portal(7)
		s, writes := r.takesNothing(t, h, p, size)
		posts(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, size)})
		for range writes + 1 {
			require.ErrorIs(t, p.ended(t).Err, ErrTimeout)
		}
		require.NotZero(t, window.Stats().Granted, "the octets may still come")
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		require.Zero(t, window.Stats().Granted)
		require.NoError(t, w.client.Close())
		s.release()
	})
}

// TestRMA_24_RequestThatLeavesLate: the connection survives, and the answer has the time Linger from then on.
func TestRMA_24_RequestThatLeavesLate(t *testing.T) {
	for name, late := range map[string]bool{"the answer comes": false, "the answer is late": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				const size, linger = wire.MaxMaxOp, 250 * time.Millisecond
				w := newPair(t, plan{client: ClientConfig{MaxOp: size}})
				r, h, _ := w.playedWith(linger, size)
				p := w.portal(7)
				s, writes := r.takesNothing(t, h, p, size)
				posts(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 16)})
				for range writes + 1 {
					require.ErrorIs(t, p.ended(t).Err, ErrTimeout)
				}
				time.Sleep(2*linger + 10*time.Millisecond)
				s.release()
				for range writes {
					r.receives(wire.TypeData)
				}
				request := r.receives(wire.TypeReadReq)
				if late {
					time.Sleep(2*linger + time.Millisecond)
					r.serves(request, octets(1, 16), nil)
					<-w.client.Done()
					require.Error(t, w.client.Err(), "the STag is invalid now")
				} else {
					time.Sleep(linger - time.Millisecond)
					r.serves(request, octets(1, 16), nil)
					posts(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 16)})
					r.serves(r.receives(wire.TypeReadReq), octets(2, 16), nil)
					require.NoError(t, p.ended(t).Err)
				}
				w.close()
			})
		})
	}
}

// TestRMA_24_PullThatLeavesLate: the same holds for the octets of a write, which change nothing.
func TestRMA_24_PullThatLeavesLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const size = wire.MaxMaxOp
		p := suite0()
		p.server.MaxOp = size
		w := newPair(t, p)
		w.serve()
		r := newRaw(w)
		r.mine.MaxOp = size
		r.greets()
		r.opens(1, regionID, wire.OpRead|wire.OpWrite)
		s, stalls := r.sinkThatStalls(size)
		to := uint32(stalls.STag)
		for i := range op.ID(6) { // more than the connection can buffer
			m := wire.ReadReq{Region: regionID, Epoch: 1, Length: size, SinkSTag: to, TTL: time.Second}
			r.posts(m.Append(nil, r.header(2+i), r.out, nil))
			_, next := r.sink(size)
			to = uint32(next)
		}
		s.wait()
		synctest.Wait() // the answers are posted
		q := wire.WriteReq{Region: regionID, Epoch: 1, Length: 16}
		r.posts(q.Append(nil, r.header(8), r.out, nil))
		time.Sleep(defaultPullTimeout + 2*defaultLinger + 10*time.Millisecond)
		require.Zero(t, w.server.solicitor.Stats().Granted)
		s.release()
		for range 6 {
			r.receives(wire.TypeReadDone)
		}
		var pull wire.Pull
		require.NoError(t, pull.Parse(r.receives(wire.TypePull), r.suite))
		time.Sleep(defaultLinger - time.Millisecond)
		r.puts(8, pull, octets(8, 16))
		pull = r.pulls(9, 16)
		require.Equal(t, make([]byte, 16), w.mem.b[:16], "it was too late for the first write")
		r.puts(9, pull, octets(9, 16))
		r.receives(wire.TypeWriteDone)
		require.Equal(t, octets(9, 16), w.mem.b[:16])
		r.ends(w)
	})
}

// TestRMA_42_MemoryOfClientsThatDoNotRead: others get it once no operation can wait for its contents any more.
func TestRMA_42_MemoryOfClientsThatDoNotRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const reads = 24 // more than the connection can buffer
		w := newPair(t, plan{server: ServerConfig{ScratchLimit: reads * (4096 + regionkey.TagSize)}})
		w.serve()
		r := newRaw(w)
		r.greets()
		r.opens(1, regionID, wire.OpRead)
		s, sink := r.sinkThatStalls(4096 + regionkey.TagSize)
		read := r.sealer(regionkey.Read, regionkey.Initiator)
		for i := range op.ID(2 * reads) {
			m := wire.ReadReq{Region: regionID, Epoch: 1, Length: 4096, SinkSTag: uint32(sink.STag), SinkTO: sink.TO, TTL: time.Second}
			r.posts(m.Append(nil, r.header(2+i), r.out, read))
		}
		s.wait()
		synctest.Wait() // all requests have come to the server
		good := w.another()
		good.serve()
		var err error
		good.client, err = NewClient(good.context(), good.qps[0], &good.plan.client)
		require.NoError(t, err)
		write, portal := Command{Op: Write, Handle: good.opens(), Buf: octets(1, 16)}, good.portal(1)
		require.ErrorIs(t, does(t, portal, write).Err, ErrNACK)
		require.ErrorContains(t, <-w.served, "the peer does not read")
		require.NoError(t, does(t, portal, write).Err)
		s.release()
		require.NoError(t, good.client.Close())
		require.NoError(t, <-good.served)
	})
}

// TestRMA_24_39_ClientThatDoesNotRead: the server's grants return, too.
func TestRMA_24_39_ClientThatDoesNotRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const size = wire.MaxMaxOp
		window := fixed(t, 1<<20)
		w := newPair(t, plan{server: ServerConfig{MaxOp: size, Solicitor: window}})
		w.serve()
		r := newRaw(w)
		r.mine.MaxOp = size
		r.greets()
		r.opens(1, regionID, wire.OpRead|wire.OpWrite)
		s, sink := r.sinkThatStalls(size + regionkey.TagSize)
		read, write := r.sealer(regionkey.Read, regionkey.Initiator), r.sealer(regionkey.Write, regionkey.Initiator)
		for i := range op.ID(6) { // more than the connection can buffer
			m := wire.ReadReq{Region: regionID, Epoch: 1, Length: size, SinkSTag: uint32(sink.STag), SinkTO: sink.TO, TTL: time.Second}
			r.posts(m.Append(nil, r.header(2+i), r.out, read))
		}
		s.wait()
		for i := range op.ID(4) {
			m := wire.WriteReq{Region: regionID, Epoch: 1, Length: size}
			r.posts(m.Append(nil, r.header(8+i), r.out, write))
		}
		synctest.Wait()
		require.EqualValues(t, 4*(size+regionkey.TagSize), window.Stats().Granted)
		time.Sleep(defaultPullTimeout + defaultLinger)
		synctest.Wait()
		require.Zero(t, window.Stats().Granted)
		w.stop()
		require.Error(t, <-w.served, "the peer does not end its half")
		s.release()
	})
}

// TestRMA_42_SinksOfClientsThatDoNotRead: the messages that lend them have not been sent when their writes time out. Others
// cannot use their memory until the connection ends, and nothing waits for the client with the connection locked.
func TestRMA_42_SinksOfClientsThatDoNotRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const sinks, sink = 8, 4096 + regionkey.TagSize
		w := newPair(t, plan{server: ServerConfig{ScratchLimit: 2*(sinks+blobStep)*sink - 2, Solicitor: fixed(t, 1<<20)}})
		w.serve()
		r := newRaw(w)
		r.greets()
		r.opens(1, regionID, wire.OpRead|wire.OpWrite)
		s, stalls := r.sinkThatStalls(sink)
		read, write := r.sealer(regionkey.Read, regionkey.Initiator), r.sealer(regionkey.Write, regionkey.Initiator)
		m := wire.ReadReq{Region: regionID, Epoch: 1, Length: 16, SinkSTag: uint32(stalls.STag), SinkTO: stalls.TO, TTL: time.Second}
		r.posts(m.Append(nil, r.header(2), r.out, read))
		s.wait()
		for i := range op.ID(900) { // more answers than the connection can buffer
			q := wire.WriteReq{Region: regionID, Epoch: 1, Length: 16, Offset: 1 << 40}
			r.posts(q.Append(nil, r.header(3+i), r.out, write))
			synctest.Wait()
		}
		for i := range op.ID(sinks) {
			q := wire.WriteReq{Region: regionID, Epoch: 1, Length: 4096}
			r.posts(q.Append(nil, r.header(1000+i), r.out, write))
		}
		synctest.Wait()
		require.Greater(t, w.qps[1].Stats().SendQueued, 2*sinks, "no sink was lent yet")
		require.Equal(t, (sinks+blobStep)*sink, w.server.scratch.used())
		time.Sleep(defaultPullTimeout + defaultLinger + time.Millisecond)
		for c := range w.server.conns {
			require.True(t, c.mu.TryLock(), "the connection goes on")
			c.mu.Unlock()
		}
		require.GreaterOrEqual(t, w.server.scratch.used(), sinks*sink)
		select {
		case err := <-w.served:
			require.ErrorContains(t, err, "the peer does not read")
		case <-time.After(2 * maxOpTimeout):
			require.Fail(t, "the connection goes on for ever")
		}
		s.release()
		w.wantNothingLeft()
	})
}

// TestRMA_42_LeaseThatIsStillPosted: it keeps its octets until its work request has been executed, and is closed then.
func TestRMA_42_LeaseThatIsStillPosted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const size = wire.MaxMaxOp
		w := newPair(t, plan{})
		r, qp, pd := newRaw(w), w.qps[1], w.plan.server.PD
		s, stalls := r.sinkThatStalls(size)
		mr, err := pd.RegisterMR(make([]byte, size), stag.LocalWrite, nil)
		require.NoError(t, err)
		for range 6 { // more than the connection can buffer
			require.NoError(t, qp.PostSend(iwarp.SendWR{
				Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Local: []iwarp.SGE{mr.Slice(0, size)}, Remote: stalls,
			}))
		}
		s.wait()
		all := newLeases(pd, qp, newScratch(size), size)
		l, err := all.sink(op.ServerRole)
		require.NoError(t, err)
		enable, err := all.enable(l, 1, l.mem)
		require.NoError(t, err)
		require.NoError(t, qp.PostSend(enable))
		begun := time.Now()
		all.close(atOnce)
		require.Zero(t, time.Since(begun), "it does not wait")
		require.Equal(t, size, all.scratch.used())
		s.release()
		synctest.Wait()
		all.close(atOnce)
		require.Zero(t, all.scratch.used())
		require.NoError(t, r.qp.Abort())
		<-qp.Done()
		require.NoError(t, mr.Close())
		w.wantNothingLeft()
	})
}

// TestDeadlineOfUnsentBlobs: it does not move while more are posted, but when one was sent.
func TestDeadlineOfUnsentBlobs(t *testing.T) {
	b, at := newBlobs(nil, nil, 1), time.Now()
	b.posted(at)
	b.posted(at.Add(time.Second))
	due, ok := b.deadline()
	require.True(t, ok)
	require.Equal(t, at.Add(maxOpTimeout), due)
	b.sent(at.Add(time.Minute), 1)
	due, ok = b.deadline()
	require.True(t, ok)
	require.Equal(t, at.Add(time.Minute+maxOpTimeout), due)
	b.sent(at.Add(time.Minute), 2)
	_, ok = b.deadline()
	require.False(t, ok)
}
