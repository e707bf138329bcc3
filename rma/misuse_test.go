package rma

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
)

// TestPortalRefusesCommands: commands that can have no effect. The slot stays free, and nothing is sent.
func TestPortalRefusesCommands(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := start(t, plan{}), start(t, plan{})
		p, h := a.portal(1), a.opens()
		readable, err := a.client.Open(a.context(), regionID, MayRead)
		require.NoError(t, err)
		require.EqualValues(t, regionID, readable.Region())
		require.Equal(t, MayRead, readable.Ops())
		sent := a.qps[0].Stats().Sent
		one := make([]byte, 1)
		for want, cmd := range map[string]Command{
			errNotOpen.Error():           {Op: Write, Handle: readable, Buf: one},
			errUnknown.Error():           {Op: Open, Handle: h, Buf: one},
			errTooLong.Error():           {Op: Read, Handle: h, Buf: make([]byte, a.client.MaxOp()+1)},
			"is no class":                {Op: Read, Handle: h, Buf: one, Class: 2},
			"Command.Timeout is 999µs":   {Op: Read, Handle: h, Buf: one, Timeout: time.Millisecond - time.Microsecond},
			"Command.Timeout is 1m0.001": {Op: Read, Handle: h, Buf: one, Timeout: time.Minute + time.Millisecond},
		} {
			_, err := p.Post(cmd)
			require.ErrorContains(t, err, want)
		}
		for _, other := range []*Handle{nil, b.opens()} {
			_, err := p.Post(Command{Op: Read, Handle: other, Buf: one})
			require.ErrorIs(t, err, errNotOpen)
		}
		require.Equal(t, sent, a.qps[0].Stats().Sent)
		_, err = p.Wait(a.context(), nil)
		require.ErrorContains(t, err, "without room")
		ended, cancel := context.WithCancel(a.context())
		cancel()
		_, err = p.Wait(ended, make([]Completion, 1))
		require.ErrorIs(t, err, context.Canceled)
		require.Same(t, a.client, p.Client())
		require.NoError(t, does(t, p, Command{Op: Read, Handle: h, Buf: one}).Err, "the slot is free")
	})
}

// TestOpenRefusesRights: rights that do not exist.
func TestOpenRefusesRights(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{})
		for _, ops := range []Ops{0, allOps + 1} {
			_, err := w.client.Open(w.context(), regionID, ops)
			require.ErrorContains(t, err, "rights that do not exist")
		}
	})
}

// TestMemoryEnds: like an io.ReaderAt and an io.WriterAt.
func TestMemoryEnds(t *testing.T) {
	m := NewMemory([]byte("memory"))
	b := []byte("......")
	for off, want := range map[int64]string{-1: "", 0: "memory", 4: "ry", 6: "", 7: ""} {
		n, err := m.ReadAt(b, off)
		require.Equal(t, want, string(b[:n]), off)
		require.Equal(t, len(want) < len(b), errors.Is(err, io.EOF), off)
	}
	for _, off := range []int64{-1, 7} {
		n, err := m.WriteAt([]byte("x"), off)
		require.ErrorIs(t, err, io.ErrShortWrite)
		require.Zero(t, n)
	}
	n, err := m.WriteAt([]byte("oil"), 4)
	require.ErrorIs(t, err, io.ErrShortWrite)
	require.Equal(t, 2, n)
	m.View(func(b []byte) { require.Equal(t, "memooi", string(b)) })
}

// TestRMA_36_ContextEndsOpens: eight are outstanding, others wait; each ends with its context. Those that were sent end in
// bounded time, and then others can be sent.
func TestRMA_36_ContextEndsOpens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r, h, _ := asks(t, plan{}, 0)
		ends := make(chan error)
		open := func(timeout time.Duration) {
			ctx, cancel := context.WithTimeout(w.context(), timeout)
			defer cancel()
			ends <- h.Reopen(ctx)
		}
		for range controlSlots {
			go open(100 * time.Millisecond)
			synctest.Wait()
		}
		begun := time.Now()
		go open(50 * time.Millisecond)
		for i := range controlSlots + 1 {
			require.ErrorIs(t, <-ends, context.DeadlineExceeded)
			want := 100 * time.Millisecond
			if i == 0 {
				want = 50 * time.Millisecond
			}
			require.Equal(t, want, time.Since(begun))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for range controlSlots { // they come too late
			r.grants(r.receives(wire.TypeOpenReq), 1)
		}
		go open(time.Second)
		r.grants(r.receives(wire.TypeOpenReq), 1)
		require.NoError(t, <-ends)
		w.close()
	})
}

// TestRMA_28_KEY_20_OpensThatAreContradicted: keys of another region, more rights than were requested, or a message that
// does not answer an Open end the connection. The keys that have come are overwritten.
func TestRMA_28_KEY_20_OpensThatAreContradicted(t *testing.T) {
	for name, answer := range map[string]func(rep wire.OpenRep, h wire.Header, c *regionkey.Control) []byte{
		"another region": func(rep wire.OpenRep, h wire.Header, c *regionkey.Control) []byte {
			rep.Region++
			return rep.Append(nil, h, c)
		},
		"more rights": func(rep wire.OpenRep, h wire.Header, c *regionkey.Control) []byte {
			rep.Ops = 7
			return rep.Append(nil, h, c)
		},
		"READ_DONE": func(rep wire.OpenRep, h wire.Header, c *regionkey.Control) []byte {
			m := wire.ReadDone{Epoch: rep.Epoch}
			return m.Append(nil, h, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, r, _, _ := asks(t, plan{}, 0)
				end := make(chan error, 1)
				o := &opening{id: regionID, ops: MayRead}
				go func() { end <- w.client.do(w.context(), op.Open, &call{cmd: Command{Op: Open}, opens: o}) }()
				msg := r.receives(wire.TypeOpenReq)
				rep := r.rep
				rep.Ops, rep.Keys = 1, [3]regionkey.Key{rep.Keys[0]}
				require.NotZero(t, rep.Keys[0])
				r.sends(answer(rep, r.header(id(msg)), r.out))
				require.Error(t, <-end)
				<-w.client.Done()
				require.ErrorContains(t, w.client.Err(), "contradicts")
				require.Equal(t, [3]regionkey.Key{}, o.granted.Keys)
				w.close()
			})
		})
	}
}

// TestRMA_28_RekeyThatIsContradicted: the answer names another epoch, or another region.
func TestRMA_28_RekeyThatIsContradicted(t *testing.T) {
	for name, done := range map[string]wire.RekeyDone{
		"another epoch":  {Region: regionID, Epoch: 3},
		"another region": {Region: regionID + 1, Epoch: 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, r, h, _ := asks(t, plan{}, 0)
				end := make(chan error, 1)
				go func() { end <- h.Rekey(w.context(), nil, 0) }()
				msg := r.receives(wire.TypeRekeyReq)
				r.sends(done.Append(nil, r.header(id(msg)), r.out))
				require.ErrorIs(t, <-end, ErrTimeout, "the server may have done it")
				<-w.client.Done()
				w.close()
			})
		})
	}
}

// TestRMA_40_WriteOfARegionThatIsClosed: a write whose region is closed meanwhile is refused, and the octets are unchanged.
func TestRMA_40_WriteOfARegionThatIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := plays(t, plan{})
		pull := r.pulls(2, 16)
		require.NoError(t, w.region.Close())
		r.answers(2, pull, octets(1, 16), regionkey.AAD{Salt: pull.Salt}, nil)
		r.wantStatus(op.NACK, op.Closing)
		w.mem.View(func(b []byte) { require.Equal(t, make([]byte, 16), b[:16]) })
		r.ends(w)
	})
}

// TestRMA_41_LateCopyHasARecord: a Buffer takes longer than the client waits.
func TestRMA_41_LateCopyHasARecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{})
		h, p := w.opens(), w.portal(1)
		stuck := w.stall()
		posts(t, p, Command{Op: Write, Handle: h, Buf: octets(1, 16)})
		stuck.wait()
		require.ErrorIs(t, p.ended(t).Err, ErrTimeout)
		stuck.release()
		synctest.Wait()
		w.mem.View(func(b []byte) { require.Equal(t, octets(1, 16), b[:16], "it had begun in time") })
		log := w.server.AuditLog()
		last := log[len(log)-1]
		require.Equal(t, "late commit", last.Reason)
		require.EqualValues(t, regionID, last.Region)
	})
}

// TestRMA_31_ExecutorUsesAllConnections: it opens the region on each of them, and again when its key is replaced.
func TestRMA_31_ExecutorUsesAllConnections(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{})
		o := w.another()
		o.serve()
		var err error
		o.client, err = NewClient(o.context(), o.qps[0], &o.plan.client)
		require.NoError(t, err)
		h, e := w.opens(), NewExecutor(w.portal(1), o.portal(1))
		for round := range 3 {
			before := [2]uint64{w.qps[0].Stats().Sent.Send.Messages, o.qps[0].Stats().Sent.Send.Messages}
			want := octets(byte(round), 50000)
			n, err := e.WriteAt(w.context(), h, want, 7)
			require.NoError(t, err)
			require.Equal(t, len(want), n)
			w.mem.View(func(b []byte) { require.True(t, bytes.Equal(want, b[7:7+n])) })
			require.Greater(t, w.qps[0].Stats().Sent.Send.Messages, before[0])
			require.Greater(t, o.qps[0].Stats().Sent.Send.Messages, before[1])
			_, err = w.region.Rekey(w.context(), nil, 0)
			require.NoError(t, err)
		}
		require.Positive(t, e.Stats().Depth)
		_, err = e.ReadAt(w.context(), h, nil, -1)
		require.ErrorContains(t, err, "negative")
		_, err = e.ReadAt(w.context(), nil, nil, 0)
		require.ErrorIs(t, err, errNotOpen)
		require.NoError(t, o.client.Close())
		o.stop()
		require.NoError(t, <-o.served)
	})
}

// TestExecutorPausesAfterTimeouts: once it has learnt that the server does not answer, it sends requests less often than its
// operations time out, and resumes at once when there is an answer.
func TestExecutorPausesAfterTimeouts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{client: ClientConfig{OpTimeout: time.Millisecond}})
		h, e := w.opens(), NewExecutor(w.portal(8))
		first, stuck := e.Stats().Cwnd, w.stall()
		b := make([]byte, 16)
		read := func() (time.Duration, error) {
			begun := time.Now()
			_, err := e.ReadAt(w.context(), h, b, 0)
			return time.Since(begun), err
		}
		for range 6 {
			_, err := read()
			require.ErrorIs(t, err, ErrTimeout)
		}
		require.Less(t, e.Stats().Cwnd, min(first, 1))
		took, err := read()
		require.ErrorIs(t, err, ErrTimeout)
		require.Greater(t, took, time.Millisecond, "it has paused")
		stuck.release()
		synctest.Wait()
		for range 8 {
			took, err = read()
			require.NoError(t, err)
		}
		require.Less(t, took, time.Millisecond)
	})
}

// TestExecutorThatBeginsNothing: it uses up no pause, and the next operation begins at once.
func TestExecutorThatBeginsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{client: ClientConfig{OpTimeout: time.Millisecond}})
		h, e := w.opens(), NewExecutor(w.portal(8))
		stuck := w.stall()
		for range 6 {
			_, err := e.ReadAt(w.context(), h, make([]byte, 16), 0)
			require.ErrorIs(t, err, ErrTimeout)
		}
		stuck.release()
		time.Sleep(time.Second) // longer than any pause
		_, err := e.ReadAt(w.context(), h, nil, 0)
		require.NoError(t, err)
		begun := time.Now()
		_, err = e.ReadAt(w.context(), h, make([]byte, 16), 0)
		require.NoError(t, err)
		require.Zero(t, time.Since(begun))
	})
}

// TestNilConfigs are like empty ones, which name no PD.
func TestNilConfigs(t *testing.T) {
	_, err := NewServer(nil).Register(1, NewMemory(make([]byte, 1)), nil)
	require.ErrorContains(t, err, "PD")
	_, err = NewClient(t.Context(), nil, nil)
	require.ErrorContains(t, err, "PD")
}
