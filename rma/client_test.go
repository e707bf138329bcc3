package rma

import (
	"bytes"
	"errors"
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

// asks makes a client that has opened a region, and the server, whose part the test plays.
func asks(t *testing.T, p plan, linger time.Duration) (*pair, *raw, *Handle, *Portal) {
	t.Helper()
	w := newPair(t, p)
	r, h, portal := w.played(linger)
	return w, r, h, portal
}

// played makes the client of the pair, and plays the server.
func (w *pair) played(linger time.Duration) (*raw, *Handle, *Portal) {
	w.Helper()
	return w.playedWith(linger, 4096)
}

// playedWith is like played, with the given length limit of operations.
func (w *pair) playedWith(linger time.Duration, maxOp uint32) (*raw, *Handle, *Portal) {
	w.Helper()
	r := w.raw(w.qps[1], w.plan.server.PD, regionkey.Responder)
	r.mine.Depth, r.mine.Linger, r.mine.MaxOp = 8, linger, maxOp
	r.suite = 1
	if w.plan.plain {
		r.suite = 0
	}
	r.mine.Offered, r.mine.Chosen = wire.Offer(r.suite), uint16(r.suite)
	var err error
	r.ring, err = regionkey.NewRing(regionID, testKey)
	require.NoError(w, err)
	played := make(chan struct{})
	go func() {
		defer close(played)
		require.NoError(w, r.hello.Parse(r.receives(wire.TypeHello)))
		r.sends(r.mine.Append(nil, r.header(0), r.out))
		var q wire.OpenReq
		msg := r.receives(wire.TypeOpenReq)
		require.NoError(w, q.Parse(msg))
		r.grants(msg, 1)
	}()
	w.client, err = NewClient(w.context(), w.qps[0], &w.plan.client)
	require.NoError(w, err)
	h, err := w.client.Open(w.context(), regionID, allOps)
	require.NoError(w, err)
	<-played
	return r, h, w.portal(4)
}

// id returns the operation of a message.
func id(msg []byte) op.ID {
	var n uint64
	for _, b := range msg[16:24] {
		n = n<<8 | uint64(b)
	}
	return op.ID(n)
}

// grants answers an OPEN_REQ.
func (r *raw) grants(request []byte, e regionkey.Epoch) {
	r.Helper()
	peer, known := r.qp.Peer()
	r.rep = wire.OpenRep{Region: regionID, Epoch: e, Size: 1 << 20, Ops: 7}
	for t := regionkey.Read; t <= regionkey.Manage && known; t++ {
		k, err := r.ring.Derive(time.Now(), e, peer.ID, r.hello.Instance, t)
		require.NoError(r, err)
		*r.rep.Key(t) = k
	}
	r.sends(r.rep.Append(nil, r.header(id(request)), r.out))
}

// status answers with a STATUS, which may invalidate an STag.
func (r *raw) status(id op.ID, m wire.Status, tag uint32) {
	r.Helper()
	msg := m.Append(nil, r.header(id), r.out)
	copy(r.mem, msg)
	if tag == 0 {
		require.NoError(r, r.qp.Send(r.context(), r.mr.Slice(0, len(msg))))
		return
	}
	require.NoError(r, r.qp.SendInvalidate(r.context(), stag.STag(tag), r.mr.Slice(0, len(msg))))
}

// serves answers a READ_REQ. change may change the blob.
func (r *raw) serves(msg []byte, plain []byte, change func(blob []byte)) {
	r.Helper()
	var q wire.ReadReq
	require.NoError(r, q.Parse(msg))
	a := regionkey.AAD{
		Op: regionkey.Read, Dir: regionkey.Responder, Suite: r.suite, Region: q.Region, Epoch: q.Epoch,
		Length: q.Length, Offset: q.Offset, OpID: uint64(id(msg)), DataCtr: uint64(id(msg)) & 0xffff,
	}
	blob := r.sealer(regionkey.Read, regionkey.Responder).Seal(nil, plain, a.DataCtr, a.Append(nil))
	if change != nil {
		change(blob)
	}
	copy(r.mem[8192:], blob)
	to := iwarp.RemoteBuffer{STag: stag.STag(q.SinkSTag), TO: q.SinkTO, Len: uint32(len(blob))}
	_ = r.qp.RDMAWrite(r.context(), to, r.mr.Slice(8192, len(blob)))
	m := wire.ReadDone{DataCtr: a.DataCtr, Length: q.Length, Epoch: q.Epoch}
	done := m.Append(nil, r.header(id(msg)), r.out)
	copy(r.mem, done)
	_ = r.qp.SendInvalidate(r.context(), stag.STag(q.SinkSTag), r.mr.Slice(0, len(done)))
}

// posts begins an operation.
func posts(t *testing.T, p *Portal, cmd Command) {
	t.Helper()
	_, err := p.Post(cmd)
	require.NoError(t, err)
}

// ended waits for the end of an operation.
func (p *Portal) ended(t *testing.T) Completion {
	t.Helper()
	var one [1]Completion
	_, err := p.Wait(t.Context(), one[:])
	require.NoError(t, err)
	return one[0]
}

// wantWindowWhole requires that all grants of the client have returned.
func (w *pair) wantWindowWhole() {
	w.Helper()
	require.Zero(w, w.client.c.solicitor.Stats().Granted)
}

// close ends the client, and requires that nothing is left of it.
func (w *pair) close() {
	w.Helper()
	require.NoError(w, w.client.Close())
	require.NoError(w, w.plan.client.PD.Close())
	w.wantWindowWhole()
	require.Zero(w, w.client.c.scratch.used())
}

// TestKEY_12_BadBlobChangesNothing: the caller's buffer is unchanged.
func TestKEY_12_BadBlobChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r, h, p := asks(t, plan{}, 0)
		for i := range 32 {
			buf := bytes.Repeat([]byte{0xa5}, 16)
			posts(t, p, Command{Op: Read, Handle: h, Buf: buf})
			r.serves(r.receives(wire.TypeReadReq), octets(1, 16), func(b []byte) { b[i] ^= 1 })
			end := p.ended(t)
			require.ErrorIs(t, end.Err, ErrRemoteAuth)
			var e *OpError
			require.ErrorAs(t, end.Err, &e)
			require.Equal(t, BadData, e.Reason)
			require.Equal(t, bytes.Repeat([]byte{0xa5}, 16), buf)
		}
		w.wantWindowWhole()
		w.close()
	})
}

// TestRMA_27_OutcomesAreErrors: each code on the wire has its own error, and unknown codes are failures.
func TestRMA_27_OutcomesAreErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r, h, p := asks(t, plan{}, 0)
		for _, c := range []struct {
			code, reason uint16
			want         error
			text         string
		}{
			{1, 1, ErrRemoteAuth, "(stale epoch)"},
			{1, 2, ErrRemoteAuth, "(bad key)"},
			{1, 9, ErrRemoteAuth, "(reason 9)"},
			{2, 1, ErrNACK, "(queue full)"},
			{2, 4, ErrNACK, "(closing)"},
			{5, 0, ErrBounds, "outside"},
			{6, 0, ErrRemote, "memory"},
			{7, 0, ErrConflict, "epoch"},
			{3, 0, ErrRemote, "memory"},
			{200, 0, ErrRemote, "memory"},
		} {
			posts(t, p, Command{Op: Read, Handle: h, Off: 5, Buf: make([]byte, 4)})
			msg := r.receives(wire.TypeReadReq)
			var q wire.ReadReq
			require.NoError(t, q.Parse(msg))
			m := wire.Status{Code: op.Outcome(c.code), Reason: op.Reason(c.reason), Region: regionID, RetryAfter: time.Millisecond}
			r.status(id(msg), m, q.SinkSTag)
			err := p.ended(t).Err
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.text)
			require.NotErrorIs(t, err, net.ErrClosed)
			var e *OpError
			require.ErrorAs(t, err, &e)
			require.Equal(t, time.Millisecond, e.RetryAfter)
			require.False(t, e.Timeout())
			w.wantWindowWhole()
		}
		w.close()
	})
}

// TestRMA_23_24_26_LateReads: timeouts are exact, and late octets do not reach the buffer. The grant returns when
// the late message has come, or after Linger (RMA-24).
func TestRMA_23_24_26_LateReads(t *testing.T) {
	for name, late := range map[string]bool{"the answer is late": true, "there is none": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, r, h, p := asks(t, plan{}, 250*time.Millisecond)
				buf := bytes.Repeat([]byte{0xa5}, 16)
				begun := time.Now()
				posts(t, p, Command{Op: Read, Handle: h, Buf: buf, Timeout: 700 * time.Millisecond})
				msg := r.receives(wire.TypeReadReq)
				end := p.ended(t)
				require.ErrorIs(t, end.Err, ErrTimeout)
				require.Equal(t, 700*time.Millisecond, time.Since(begun))
				require.Equal(t, 700*time.Millisecond, end.Total)
				require.EqualValues(t, 64, w.client.c.solicitor.Stats().Granted, "the octets may still come")
				time.Sleep(249 * time.Millisecond)
				if late {
					r.serves(msg, octets(1, 16), nil)
					synctest.Wait()
				} else {
					require.EqualValues(t, 64, w.client.c.solicitor.Stats().Granted)
					time.Sleep(2 * time.Millisecond)
					synctest.Wait()
				}
				w.wantWindowWhole()
				require.Equal(t, bytes.Repeat([]byte{0xa5}, 16), buf)
				if !late {
					r.serves(msg, octets(1, 16), nil)
					<-w.client.Done()
					require.Error(t, w.client.Err(), "the STag is invalid now")
				}
				require.Equal(t, bytes.Repeat([]byte{0xa5}, 16), buf)
				w.close()
			})
		})
	}
}

// TestRMA_25_WithoutLinger: the STag is invalid at the timeout.
func TestRMA_25_WithoutLinger(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r, h, p := asks(t, plan{}, 0)
		posts(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 16)})
		msg := r.receives(wire.TypeReadReq)
		require.ErrorIs(t, p.ended(t).Err, ErrTimeout)
		synctest.Wait()
		w.wantWindowWhole()
		r.serves(msg, octets(1, 16), nil)
		<-w.client.Done()
		require.ErrorIs(t, w.client.Err(), net.ErrClosed)
		w.close()
	})
}

// TestRMA_14_18_WritesWaitForPull: a PULL restarts the timer, with Ts + G from its receipt, whatever time was left.
func TestRMA_14_18_WritesWaitForPull(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r, h, p := asks(t, plan{}, 0)
		posts(t, p, Command{Op: Write, Handle: h, Buf: octets(1, 16)})
		msg := r.receives(wire.TypeWriteReq)
		octetsSent := w.qps[0].Stats().Sent
		time.Sleep(999 * time.Millisecond)
		require.Equal(t, octetsSent, w.qps[0].Stats().Sent, "no octet leaves before PULL")
		mem, tag := r.sink(32)
		pull := wire.Pull{Salt: [16]byte{7}, SinkSTag: uint32(tag), Length: 16, Timeout: 300 * time.Millisecond}
		r.sends(pull.Append(nil, r.header(id(msg)), r.out))
		begun := time.Now()
		data, dead, err := r.next()
		require.NoError(t, err)
		require.Equal(t, wire.TypeData, wire.Type(data[1]))
		require.Equal(t, tag, dead)
		require.NotEqual(t, make([]byte, 32), mem)
		require.ErrorIs(t, p.ended(t).Err, ErrTimeout)
		require.Equal(t, 400*time.Millisecond, time.Since(begun), "Ts and the guard")
		w.close()
	})
}

// TestRMA_22_LatePullIsRefused: no DATA is sent.
func TestRMA_22_LatePullIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r, h, p := asks(t, plan{}, 0)
		posts(t, p, Command{Op: Write, Handle: h, Buf: octets(1, 16)})
		msg := r.receives(wire.TypeWriteReq)
		require.ErrorIs(t, p.ended(t).Err, ErrTimeout)
		mem, tag := r.sink(32)
		pull := wire.Pull{Salt: [16]byte{7}, SinkSTag: uint32(tag), Length: 16, Timeout: 300 * time.Millisecond}
		r.sends(pull.Append(nil, r.header(id(msg)), r.out))
		answer, dead, err := r.next()
		require.NoError(t, err)
		var m wire.Status
		require.NoError(t, m.Parse(answer))
		require.Equal(t, []any{op.NACK, op.TooLate, tag}, []any{m.Code, m.Reason, dead})
		require.Equal(t, make([]byte, 32), mem)
		require.EqualValues(t, 1, w.client.Stats().LatePulls)
		w.close()
	})
}

// TestRMA_21_LossAfterData: it is reported only when the server can have no effect any more.
func TestRMA_21_LossAfterData(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r, h, p := asks(t, plan{}, 0)
		posts(t, p, Command{Op: Write, Handle: h, Buf: octets(1, 16)})
		msg := r.receives(wire.TypeWriteReq)
		posts(t, p, Command{Op: Write, Handle: h, Buf: octets(1, 16), Tag: 2})
		r.receives(wire.TypeWriteReq)
		_, tag := r.sink(32)
		pull := wire.Pull{Salt: [16]byte{7}, SinkSTag: uint32(tag), Length: 16, Timeout: 300 * time.Millisecond}
		r.sends(pull.Append(nil, r.header(id(msg)), r.out))
		begun := time.Now()
		r.receives(wire.TypeData)
		require.NoError(t, r.qp.Abort())
		end := p.ended(t)
		require.EqualValues(t, 2, end.Tag, "what was not pulled is told at once")
		require.ErrorIs(t, end.Err, net.ErrClosed)
		require.NotErrorIs(t, end.Err, ErrTimeout)
		require.Zero(t, time.Since(begun))
		end = p.ended(t)
		require.Equal(t, 400*time.Millisecond, time.Since(begun))
		require.ErrorIs(t, end.Err, ErrTimeout)
		require.ErrorIs(t, end.Err, net.ErrClosed)
		_, err := p.Post(Command{Op: Write, Handle: h, Buf: octets(1, 16)})
		require.ErrorIs(t, err, net.ErrClosed)
		w.close()
	})
}

// invalidates sends a message that invalidates an STag.
func (r *raw) invalidates(msg []byte, tag uint32) {
	copy(r.mem, msg)
	_ = r.qp.SendInvalidate(r.context(), stag.STag(tag), r.mr.Slice(0, len(msg))) // the client may have ended the connection
}

// TestRMA_28_AnswersThatContradict: answers that contradict their operation end the connection.
func TestRMA_28_AnswersThatContradict(t *testing.T) {
	for name, answer := range map[string]func(r *raw, msg []byte, q wire.ReadReq){
		"another epoch": func(r *raw, msg []byte, q wire.ReadReq) {
			m := wire.ReadDone{Length: q.Length, Epoch: 2}
			r.invalidates(m.Append(nil, r.header(id(msg)), r.out), q.SinkSTag)
		},
		"the sink is alive": func(r *raw, msg []byte, q wire.ReadReq) {
			m := wire.ReadDone{Length: q.Length, Epoch: 1}
			r.sends(m.Append(nil, r.header(id(msg)), r.out))
		},
		"another type": func(r *raw, msg []byte, q wire.ReadReq) {
			m := wire.WriteDone{Length: q.Length, Epoch: 1}
			r.sends(m.Append(nil, r.header(id(msg)), r.out))
		},
		"another operation": func(r *raw, msg []byte, q wire.ReadReq) {
			r.status(id(msg)+1, wire.Status{Code: op.NACK, Region: regionID}, 0)
		},
		"another length": func(r *raw, msg []byte, q wire.ReadReq) {
			m := wire.ReadDone{Length: q.Length + 1, Epoch: 1}
			r.invalidates(m.Append(nil, r.header(id(msg)), r.out), q.SinkSTag)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, r, h, p := asks(t, plan{}, 0)
				buf := make([]byte, 16)
				posts(t, p, Command{Op: Read, Handle: h, Buf: buf})
				msg := r.receives(wire.TypeReadReq)
				var q wire.ReadReq
				require.NoError(t, q.Parse(msg))
				answer(r, msg, q)
				err := p.ended(t).Err
				require.ErrorIs(t, err, net.ErrClosed)
				var e *OpError
				require.True(t, errors.As(err, &e))
				require.Equal(t, op.Closed, op.Outcome(e.Outcome))
				require.Equal(t, make([]byte, 16), buf)
				w.close()
			})
		})
	}
}

// TestReopenKeepsLaterKeys: it keeps keys that another Reopen of the Handle has obtained meanwhile.
func TestReopenKeepsLaterKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{})
		h := w.opens()
		slow := &opening{id: h.region, ops: h.ops}
		require.NoError(t, w.client.do(w.context(), op.Open, &call{cmd: Command{Op: Open}, opens: slow}))
		_, err := w.region.Rekey(w.context(), nil, 0)
		require.NoError(t, err)
		require.NoError(t, h.Reopen(w.context()))
		require.NoError(t, h.take(slow))
		require.Equal(t, w.region.Epoch(), h.Epoch())
	})
}

// A slowEnd blocks when it is told of the end of an operation, until it is released.
type slowEnd struct{ entered, release chan struct{} }

func (slowEnd) issued() {}

func (e slowEnd) completed(Slot, Completion) {
	close(e.entered)
	<-e.release
}

func (slowEnd) tell() {}

// TestRMA_18_19_TimeOfAPullCountsFromWhenItHasCome: and not from when the connection began to handle earlier
// messages.
func TestRMA_18_19_TimeOfAPullCountsFromWhenItHasCome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r, h, p := asks(t, plan{client: ClientConfig{Dispatch: [2]time.Duration{-1, -1}}}, 0) // no timer ends meanwhile
		posts(t, p, Command{Op: Write, Handle: h, Buf: octets(1, 16)})
		msg := r.receives(wire.TypeWriteReq)
		slow := slowEnd{make(chan struct{}), make(chan struct{})}
		c := w.client.c
		require.NoError(t, c.begin(op.Command{Kind: op.Open}, &call{cmd: Command{Op: Open}, opens: &opening{id: 7, ops: MayRead}, to: slow}))
		c.send()
		r.status(id(r.receives(wire.TypeOpenReq)), wire.Status{Code: op.RemoteAuth, Reason: op.BadKey}, 0)
		<-slow.entered
		time.Sleep(300 * time.Millisecond)
		begun := time.Now()
		_, tag := r.sink(32)
		m := wire.Pull{Length: 16, SinkSTag: uint32(tag), Timeout: 500 * time.Millisecond}
		r.sends(m.Append(nil, r.header(id(msg)), r.out))
		synctest.Wait()
		close(slow.release)
		require.ErrorIs(t, p.ended(t).Err, ErrTimeout)
		require.Equal(t, 600*time.Millisecond, time.Since(begun), "the time of the server, and the guard")
		w.close()
	})
}
