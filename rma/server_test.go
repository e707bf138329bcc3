package rma

import (
	"context"
	"log/slog"
	"math"
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

// plays makes a server, and a peer that has opened its region; the test plays the peer.
func plays(t *testing.T, p plan) (*pair, *raw) {
	t.Helper()
	w := newPair(t, p)
	w.serve()
	r := newRaw(w)
	r.greets()
	r.opens(1, regionID, wire.OpRead|wire.OpWrite|wire.OpManage)
	return w, r
}

// ends ends the connection of such a peer.
func (r *raw) ends(w *pair) {
	r.Helper()
	require.NoError(r, r.qp.Close())
	require.NoError(r, <-w.served)
	w.served = nil
	w.wantNothingLeft()
}

// sink registers a sink of n octets, which is bound to the QP.
func (r *raw) sink(n int) (mem []byte, tag stag.STag) {
	r.Helper()
	mr, err := r.pd.AllocMR(n, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{QP: r.qp})
	require.NoError(r, err)
	mem = make([]byte, n)
	require.NoError(r, r.qp.Register(r.context(), mr, mem, stag.LocalWrite|stag.RemoteWrite))
	return mem, mr.STag()
}

// reads sends a READ_REQ.
func (r *raw) reads(id op.ID, q wire.ReadReq, s *regionkey.Sealer) {
	r.Helper()
	r.sends(q.Append(nil, r.header(id), r.out, s))
}

// TestRMA_6_WrongOuterTag: it ends the connection, without effect, and is recorded.
func TestRMA_6_WrongOuterTag(t *testing.T) {
	q := wire.WriteReq{Region: regionID, Epoch: 1, Length: 16}
	for i := range wire.TypeWriteReq.Size() {
		if i > 24 && i < 64 && i%7 != 0 {
			continue // a few octets of the body are enough
		}
		bubble(t, func(t *testing.T) {
			w, r := plays(t, plan{})
			msg := q.Append(nil, r.header(2), r.out, r.sealer(regionkey.Write, regionkey.Initiator))
			msg[i] ^= 1
			r.sends(msg)
			r.wantEnd(w, "rma: ")
			log := w.server.AuditLog()
			require.Contains(t, log[len(log)-1].Reason, "rma: ", "octet %d", i)
			require.False(t, log[len(log)-1].Granted)
			w.wantNothingLeft()
		})
	}
}

// TestRMA_6_MessagesOfOthers: a message of another connection, and a message that this side has sent itself.
func TestRMA_6_MessagesOfOthers(t *testing.T) {
	var recorded []byte
	bubble(t, func(t *testing.T) {
		w, r := plays(t, plan{})
		recorded = r.mine.Append(nil, wire.Header{}, r.out)
		r.ends(w)
	})
	bubble(t, func(t *testing.T) {
		w := newPair(t, plan{})
		w.serve()
		r := newRaw(w)
		r.sends(recorded)
		r.wantEnd(w, "outer tag")
		w.wantNothingLeft()
	})
	bubble(t, func(t *testing.T) {
		w := newPair(t, plan{})
		w.serve()
		r := newRaw(w)
		r.greets()
		r.sends(r.hello.Append(nil, r.header(0), r.in))
		r.wantEnd(w, "outer tag")
		w.wantNothingLeft()
	})
}

// TestRMA_7_CounterIsLastPlusOne: a message that is repeated or skipped ends the connection.
func TestRMA_7_CounterIsLastPlusOne(t *testing.T) {
	for name, change := range map[string]uint64{"repeated": math.MaxUint64, "skipped": 1, "much later": 1 << 40} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, r := plays(t, plan{})
				q := wire.OpenReq{Region: regionID, Instance: r.mine.Instance, Ops: wire.OpRead}
				h := r.header(2)
				h.Ctr += change
				r.sends(q.Append(nil, h, r.out))
				r.wantEnd(w, "not the next message")
			})
		})
	}
}

// TestRMA_8_WrongInnerTag: it is answered at once; the connection survives, and there is a record.
func TestRMA_8_WrongInnerTag(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := plays(t, plan{})
		_, tag := r.sink(32)
		q := wire.ReadReq{Region: regionID, Epoch: 1, Length: 16, SinkSTag: uint32(tag), TTL: time.Second}
		begun := time.Now()
		r.reads(2, q, r.sealer(regionkey.Write, regionkey.Initiator)) // the key for another right
		m := r.wantStatus(op.RemoteAuth, op.BadKey)
		require.Zero(t, time.Since(begun), "without delay")
		require.Zero(t, m.Epoch, "the epoch is not told")
		log := w.server.AuditLog()
		last := log[len(log)-1]
		require.Equal(t, []any{Read, regionID, "wrong key", true}, []any{last.Op, last.Region, last.Reason, last.Known})
		r.opens(3, regionID, wire.OpRead)
		require.EqualValues(t, 1, w.server.Stats().AuthFailures)
		require.Equal(t, 1, w.server.Stats().Connections)
		r.ends(w)
		require.EqualValues(t, 1, w.server.Stats().AuthFailures, "they stay")
		require.Zero(t, w.server.Stats().Connections)
	})
}

// TestCountersOfAConnectionThatEndsMeanwhile: a connection ends after Stats has chosen the connections to ask.
// Its counters are not left out.
func TestCountersOfAConnectionThatEndsMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := plays(t, plan{})
		_, tag := r.sink(32)
		q := wire.ReadReq{Region: regionID, Epoch: 1, Length: 16, SinkSTag: uint32(tag), TTL: time.Second}
		r.reads(2, q, r.sealer(regionkey.Write, regionkey.Initiator))
		r.wantStatus(op.RemoteAuth, op.BadKey)
		c := w.servedConn()
		r.ends(w)
		require.EqualValues(t, 1, c.serverStats().AuthFailures)
	})
}

// TestRMA_9_WhatIsNotAllowedIsNotToldApart: an unknown region, a missing right and a wrong key.
func TestRMA_9_WhatIsNotAllowedIsNotToldApart(t *testing.T) {
	for name, p := range suites() {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newPair(t, p)
				_, err := w.server.Register(2, NewMemory(make([]byte, 64)), &RegionOptions{Ops: MayRead})
				require.NoError(t, err)
				_, err = w.server.Register(4, NewMemory(make([]byte, 64)), nil)
				require.NoError(t, err)
				w.serve()
				r := newRaw(w)
				if w.plan.server.AES256 {
					r.mine.Offered = 4
				}
				r.greets()
				r.opens(1, 2, wire.OpRead|wire.OpWrite)
				require.Equal(t, wire.OpRead, r.rep.Ops, "what the region has is granted")
				var answers [][]byte
				for i, q := range []wire.WriteReq{
					{Region: 3, Epoch: 1, Length: 8},
					{Region: 2, Epoch: 1, Length: 8},
					{Region: 4, Epoch: 1, Length: 8},
					{Region: 4, Epoch: 1, Length: 8, Offset: 1 << 63},
					{Region: 4, Epoch: 77, Length: 8},
				} {
					s := r.sealer(regionkey.Read, regionkey.Initiator)
					r.sends(q.Append(nil, r.header(op.ID(2+i)), r.out, s))
					msg := r.receives(wire.TypeStatus)
					clear(msg[8:24])         // ctr and opID
					clear(msg[32:40])        // the region, as the client has said it
					clear(msg[len(msg)-16:]) // the tag
					answers = append(answers, msg)
				}
				for _, a := range answers[1:] {
					require.Equal(t, answers[0], a)
				}
				for i, region := range []uint64{3, 2} { // unknown; nothing that may be granted
					q := wire.OpenReq{Region: region, Instance: r.mine.Instance, Ops: wire.OpManage}
					r.sends(q.Append(nil, r.header(op.ID(10+i)), r.out))
					r.wantStatus(op.RemoteAuth, op.BadKey)
				}
				q := wire.OpenReq{Region: 2, Instance: [16]byte{9}, Ops: wire.OpRead} // with another instance
				r.sends(q.Append(nil, r.header(12), r.out))
				r.wantStatus(op.RemoteAuth, op.BadKey)
				r.ends(w)
			})
		})
	}
}

// TestRMA_9_RightsAreThoseOfTheConnection: a client that uses the instance of an earlier connection has the keys that it
// got there, but not rights that Authorize refuses it by now, neither before a Rekey nor after its grace.
func TestRMA_9_RightsAreThoseOfTheConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		allowed := allOps
		w, before := plays(t, plan{server: ServerConfig{Authorize: func(iwarp.Peer, uint64, Ops) Ops { return allowed }}})
		allowed = MayRead
		o := w.another()
		o.serve()
		r := newRaw(o)
		r.greets()
		r.opens(1, regionID, wire.OpRead|wire.OpWrite)
		require.Equal(t, wire.OpRead, r.rep.Ops, "what the server grants")
		r.rep.Keys = before.rep.Keys
		write := func(id op.ID) {
			q := wire.WriteReq{Region: regionID, Epoch: 1, Length: 16}
			r.sends(q.Append(nil, r.header(id), r.out, r.sealer(regionkey.Write, regionkey.Initiator)))
			r.wantStatus(op.RemoteAuth, op.BadKey)
		}
		write(2)
		_, err := w.region.Rekey(t.Context(), nil, time.Second)
		require.NoError(t, err)
		write(3)
		time.Sleep(time.Second)
		write(4)
		require.NoError(t, r.qp.Close())
		require.NoError(t, <-o.served)
		before.ends(w)
	})
}

// TestRMA_10_BoundsAreToldToThoseWithTheKey: the end of the region is exact, and nothing wraps.
func TestRMA_10_BoundsAreToldToThoseWithTheKey(t *testing.T) {
	for name, p := range suites() {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := start(t, p)
				h, portal := w.opens(), w.portal(1)
				size := w.region.Size()
				for _, c := range []struct {
					off  uint64
					n    int
					good bool
				}{
					{size - 16, 16, true},
					{size, 0, true},
					{size - 15, 16, false},
					{size + 1, 0, false},
					{size, 1, false},
					{math.MaxUint64, 1, false},
					{math.MaxUint64 - 15, 16, false},
					{1 << 63, 16, false},
					{math.MaxUint64, 0, false},
				} {
					for _, what := range []Op{Read, Write} {
						end := does(t, portal, Command{Op: what, Handle: h, Off: c.off, Buf: make([]byte, c.n)})
						if c.good {
							require.NoError(t, end.Err, "%v of %d octets at %d", what, c.n, c.off)
							continue
						}
						require.ErrorIs(t, end.Err, ErrBounds, "%v of %d octets at %d", what, c.n, c.off)
						var e *OpError
						require.ErrorAs(t, end.Err, &e)
						require.Equal(t, []any{Bounds, what, regionID, c.off}, []any{e.Outcome, e.Op, e.Region, e.Off})
						require.Zero(t, end.N)
					}
				}
			})
		})
	}
}

// TestRMA_12_BlobIsThereBeforeItsMessage: and the message has invalidated the sink.
func TestRMA_12_BlobIsThereBeforeItsMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := plays(t, plan{})
		w.mem.Update(func(b []byte) { copy(b, "sixteen octets!!") })
		mem, tag := r.sink(32)
		r.reads(2, wire.ReadReq{Region: regionID, Epoch: 1, Length: 16, SinkSTag: uint32(tag), TTL: time.Second}, r.sealer(regionkey.Read, regionkey.Initiator))
		msg, dead, err := r.next()
		require.NoError(t, err)
		var done wire.ReadDone
		require.NoError(t, done.Parse(msg))
		require.Equal(t, tag, dead, "the sink is invalid")
		a := regionkey.AAD{Op: regionkey.Read, Dir: regionkey.Responder, Suite: 1, Region: regionID, Epoch: 1, Length: 16, OpID: 2, DataCtr: done.DataCtr}
		plain, err := r.sealer(regionkey.Read, regionkey.Responder).OpenInPlace(mem, done.DataCtr, a.Append(nil))
		require.NoError(t, err)
		require.Equal(t, "sixteen octets!!", string(plain))
		r.ends(w)
	})
}

// pulls requests to write n octets, and returns the PULL.
func (r *raw) pulls(id op.ID, n int) (m wire.Pull) {
	r.Helper()
	q := wire.WriteReq{Region: regionID, Epoch: 1, Length: uint32(n)}
	r.sends(q.Append(nil, r.header(id), r.out, r.sealer(regionkey.Write, regionkey.Initiator)))
	require.NoError(r, m.Parse(r.receives(wire.TypePull), r.suite))
	return m
}

// answers writes a blob and sends DATA. change may change the blob and its AAD.
func (r *raw) answers(id op.ID, pull wire.Pull, plain []byte, a regionkey.AAD, change func(blob []byte)) {
	r.Helper()
	a.OpID, a.Op, a.Dir, a.Suite, a.Region, a.Epoch, a.Length = uint64(id), regionkey.Write, regionkey.Initiator, r.suite, regionID, 1, uint32(len(plain))
	blob := r.sealer(regionkey.Write, regionkey.Initiator).Seal(nil, plain, a.DataCtr, a.Append(nil))
	if change != nil {
		change(blob)
	}
	copy(r.mem[8192:], blob)
	to := iwarp.RemoteBuffer{STag: stag.STag(pull.SinkSTag), TO: pull.SinkTO, Len: uint32(len(blob))}
	require.NoError(r, r.qp.RDMAWrite(r.context(), to, r.mr.Slice(8192, len(blob))))
	m := wire.Data{DataCtr: a.DataCtr, Length: uint32(len(plain))}
	msg := m.Append(nil, r.header(id), r.out)
	copy(r.mem, msg)
	require.NoError(r, r.qp.SendInvalidate(r.context(), stag.STag(pull.SinkSTag), r.mr.Slice(0, len(msg))))
}

// TestRMA_15_SaltIsFreshAndSealed: a blob with another salt, or any other difference, changes nothing.
func TestRMA_15_SaltIsFreshAndSealed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := plays(t, plan{})
		want := octets('a', 16)
		seen := map[[16]byte]bool{}
		ctr := uint64(0)
		fails := func(id op.ID, salt func(*regionkey.AAD), change func([]byte)) {
			t.Helper()
			pull := r.pulls(id, 16)
			require.False(t, seen[pull.Salt])
			seen[pull.Salt] = true
			a := regionkey.AAD{Salt: pull.Salt, DataCtr: ctr}
			if salt != nil {
				salt(&a)
			}
			r.answers(id, pull, octets('x', 16), a, change)
			ctr++
			r.wantStatus(op.RemoteAuth, op.BadData)
			w.mem.View(func(b []byte) { require.Equal(t, make([]byte, 16), b[:16], "the region is unchanged") })
		}
		fails(2, func(a *regionkey.AAD) { a.Salt[0] ^= 1 }, nil)
		fails(3, func(a *regionkey.AAD) { a.Offset = 1 }, nil)
		for i := range 32 {
			fails(op.ID(4+i), nil, func(b []byte) { b[i] ^= 0x40 })
		}
		pull := r.pulls(99, 16)
		r.answers(99, pull, want, regionkey.AAD{Salt: pull.Salt, DataCtr: ctr}, nil)
		var done wire.WriteDone
		require.NoError(t, done.Parse(r.receives(wire.TypeWriteDone)))
		require.Equal(t, pull.Salt, done.Salt)
		w.mem.View(func(b []byte) { require.Equal(t, want, b[:16]) })
		r.ends(w)
	})
}

// TestRMA_13_SinkServesOnce: after the DATA, a Write to it ends the connection.
func TestRMA_13_SinkServesOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := plays(t, plan{})
		pull := r.pulls(2, 16)
		r.answers(2, pull, octets(1, 16), regionkey.AAD{Salt: pull.Salt}, nil)
		r.receives(wire.TypeWriteDone)
		to := iwarp.RemoteBuffer{STag: stag.STag(pull.SinkSTag), TO: pull.SinkTO, Len: 16}
		_ = r.qp.RDMAWrite(r.context(), to, r.mr.Slice(0, 16))
		<-r.qp.Done()
		require.NotNil(t, r.qp.Terminated(), "the peer says why")
		require.Error(t, <-w.served)
		w.served = nil
		w.mem.View(func(b []byte) { require.Equal(t, octets(1, 16), b[:16]) })
		w.wantNothingLeft()
	})
	bubble(t, func(t *testing.T) {
		// More octets than the operation has.
		w, r := plays(t, plan{})
		pull := r.pulls(2, 16)
		to := iwarp.RemoteBuffer{STag: stag.STag(pull.SinkSTag), TO: pull.SinkTO, Len: 64}
		_ = r.qp.RDMAWrite(r.context(), to, r.mr.Slice(0, 33))
		<-r.qp.Done()
		require.Error(t, <-w.served)
		w.served = nil
		w.wantNothingLeft()
	})
}

// TestRMA_42_FloodOfWrongKeys: it ends the connection, and leaves nothing.
func TestRMA_42_FloodOfWrongKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := plays(t, plan{server: ServerConfig{MaxFailures: 10}})
		n := 0
		for ; n < 100; n++ {
			q := wire.WriteReq{Region: 77, Epoch: 1, Length: 16}
			r.sends(q.Append(nil, r.header(op.ID(n+2)), r.out, r.sealer(regionkey.Write, regionkey.Initiator)))
			if _, _, err := r.next(); err != nil {
				break
			}
		}
		require.Less(t, n, 20)
		err := <-w.served
		w.served = nil
		require.ErrorContains(t, err, "too many requests with wrong keys")
		events, lost := w.server.audit.counts()
		require.Greater(t, events, uint64(9))
		require.Positive(t, lost, "not all of them have a record")
		w.wantNothingLeft()
	})
}

// TestRMA_42_MoreRequestsThanCredits: they end the connection.
func TestRMA_42_MoreRequestsThanCredits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := plays(t, plan{server: ServerConfig{Depth: 4}})
		for i := range 5 {
			q := wire.WriteReq{Region: regionID, Epoch: 1, Length: 16}
			r.sends(q.Append(nil, r.header(op.ID(i+2)), r.out, r.sealer(regionkey.Write, regionkey.Initiator)))
		}
		r.wantEnd(w, "more requests than the peer has credits")
		w.wantNothingLeft()
	})
}

// TestServeFinishesWhatItHasBegun: when its context ends, the client learns the outcome, and not by a timeout.
func TestServeFinishesWhatItHasBegun(t *testing.T) {
	for _, do := range []Op{Read, Write} {
		bubble(t, func(t *testing.T) {
			w := start(t, plan{})
			h, p := w.opens(), w.portal(2)
			stuck := w.stall()
			posts(t, p, Command{Op: do, Handle: h, Buf: octets(1, 16)})
			stuck.wait()
			begun := time.Now()
			w.stop()
			synctest.Wait()
			stuck.release()
			require.NoError(t, p.ended(t).Err)
			require.NoError(t, <-w.served)
			w.served = nil
			require.Zero(t, time.Since(begun))
		})
	}
}

// A slowLog is a Handler that blocks on the record of a refusal, until it is released for good.
type slowLog struct {
	slog.Handler
	entered, release chan struct{}
}

func (s slowLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (s slowLog) Handle(context.Context, slog.Record) error {
	select {
	case s.entered <- struct{}{}:
		<-s.release
	case <-s.release:
	}
	return nil
}

// TestRMA_41_HandlerDelaysItsConnectionAlone: other connections get their grants meanwhile, and so does that connection.
func TestRMA_41_HandlerDelaysItsConnectionAlone(t *testing.T) {
	log := slowLog{entered: make(chan struct{}), release: make(chan struct{})}
	plan := plan{server: ServerConfig{Solicitor: fixed(t, 4112), Logger: slog.New(log)}}
	plan.patient()
	w, r := plays(t, plan)
	other := w.another()
	other.serve()
	s := newRaw(other)
	s.greets()
	s.opens(1, regionID, wire.OpWrite)
	pull := s.pulls(2, 4096)
	r.asksToWrite(3, 4096)
	r.wrong(4)
	<-log.entered
	s.answers(2, pull, octets(1, 4096), regionkey.AAD{Salt: pull.Salt}, nil)
	s.receives(wire.TypeWriteDone)
	r.wantStatus(op.RemoteAuth, op.BadKey)
	r.receives(wire.TypePull)
	s.opens(3, regionID, wire.OpRead)
	w.server.Stats()
	close(log.release)
	require.NoError(t, s.qp.Close())
	require.NoError(t, <-other.served)
	require.NoError(t, r.qp.Abort())
	require.Error(t, <-w.served)
}

// unserved makes the connection of a server whose goroutine has not begun yet, and a peer that has greeted it. has waits until
// n completions wait.
func unserved(t *testing.T, p plan) (w *pair, c *conn, r *raw, has func(n int)) {
	t.Helper()
	w = newPair(t, p)
	c, err := newConn(w.qps[1], serverSettings(w.server))
	require.NoError(t, err)
	c.enter()
	c.timer = time.AfterFunc(time.Hour, c.rings)
	c.greet()
	c.leave()
	has = func(n int) {
		require.Eventually(t, func() bool { return c.cq.Stats().Waiting == n }, 10*time.Second, time.Millisecond)
	}
	r = newRaw(w)
	r.sends(r.mine.Append(nil, r.header(0), r.out))
	has(1)
	c.enter()
	c.drain()
	c.leave()
	require.NoError(t, r.hello.Parse(r.receives(wire.TypeHello)))
	r.suite = uint8(r.hello.Chosen)
	return w, c, r, has
}

// wrong sends a request with a wrong key.
func (r *raw) wrong(id int) {
	r.Helper()
	q := wire.WriteReq{Region: 77, Epoch: 1, Length: 16}
	r.sends(q.Append(nil, r.header(op.ID(id)), r.out, r.sealer(regionkey.Write, regionkey.Initiator)))
}

// TestRMA_42_FloodOfRequests: while a peer keeps sending, others can lock the connection, for example the timer and the
// goroutine that delivers grants.
func TestRMA_42_FloodOfRequests(t *testing.T) {
	const many = 2 * outboxWRs
	_, c, r, has := unserved(t, plan{server: ServerConfig{Depth: many, MaxFailures: 1 << 30}})
	for i := range many {
		r.wrong(2 + i)
	}
	has(many)
	c.enter()
	c.take(c.poll())
	require.LessOrEqual(t, c.recvCtr, uint64(outboxWRs+len(c.wcs)))
	c.leave()
	go c.run()
	require.NoError(t, r.qp.Abort())
	<-c.done
}

// TestRMA_42_FloodDuringADrain: before the machines are told that an STag is invalid, the messages that have come are
// handled, but not those that a peer that keeps sending adds meanwhile.
func TestRMA_42_FloodDuringADrain(t *testing.T) {
	w, c, r, has := unserved(t, plan{server: ServerConfig{MaxFailures: 1 << 30}})
	r.wrong(2)
	has(1)
	w.server.audit.mu.Lock() // so that the record must wait
	handled := make(chan uint64)
	go func() {
		c.enter()
		defer c.leave()
		c.drain()
		handled <- c.recvCtr
	}()
	has(0)
	for i := range 10 {
		r.wrong(3 + i)
	}
	has(10)
	w.server.audit.mu.Unlock()
	require.EqualValues(t, 2, <-handled, "the HELLO, and what came before the drain")
	go c.run()
	require.NoError(t, r.qp.Abort())
	<-c.done
}
