package host

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/stag"
)

// last returns the newest I/O command with an opcode that the target has received.
func (tg *target) last(op capsule.Opcode) capsule.SQE {
	list := tg.commands(op)
	return list[len(list)-1]
}

// equalGolden compares a command with one of Linux, except for CID, key and address.
func equalGolden(t *testing.T, tg *target, name string) {
	t.Helper()
	want, _, err := capsule.ParseSQE(goldenItem(t, 2, name))
	require.NoError(t, err)
	got := tg.last(want.Opcode)
	require.Equal(t, want.SGL.Type(), got.SGL.Type(), name)
	require.Equal(t, want.SGL.Length(), got.SGL.Length(), name)
	if got.SGL.Type() == capsule.SGLKeyedInvalidate {
		require.Zero(t, got.SGL.Address(), "the first TO reveals no address")
		require.NotZero(t, got.SGL.Key())
		got.SGL = want.SGL
	}
	got.CID = want.CID
	got.CDW13 = want.CDW13 // hints
	require.Equal(t, want, got, name)
}

func TestHOST_8_InCapsule(t *testing.T) {
	ctx := context.Background()
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		n := disk(t, connect(t, tg, pipeOptions(t)))
		require.Equal(t, uint8(capsule.SGLInCapsule), connectOfIO(tg).Type())
		write := func(size int) {
			_, err := n.WriteAt(pattern(size, 1), 0)
			require.NoError(t, err)
		}
		write(4096)
		equalGolden(t, tg, "write-slba0-n1-incapsule")
		write(4 * 4096)
		equalGolden(t, tg, "write-slba0-n4")
		_, err := n.ReadAt(make([]byte, 4096), 0)
		require.NoError(t, err)
		equalGolden(t, tg, "read-slba0-n1")
		_, err = n.Compare(ctx, pattern(4096, 1), 0)
		require.NoError(t, err)
		equalGolden(t, tg, "compare-slba0-n1-incapsule")
	})
	for _, byOption := range []bool{true, false} {
		virtual(t, func(t *testing.T) {
			tg, o := newTarget(t), pipeOptions(t)
			if o.NoInCapsule = byOption; !byOption {
				tg.id.SGLS &^= capsule.SGLSInCapsule
			}
			n := disk(t, connect(t, tg, o))
			require.Equal(t, uint8(capsule.SGLKeyedInvalidate), connectOfIO(tg).Type())
			_, err := n.WriteAt(pattern(4096, 1), 0)
			require.NoError(t, err)
			sqe := tg.last(capsule.OpWrite)
			require.Equal(t, uint8(capsule.SGLKeyedInvalidate), sqe.SGL.Type())
		})
	}
}

// connectOfIO returns the SGL of the Connect on queue 1.
func connectOfIO(tg *target) *capsule.SGL {
	for _, c := range tg.commands(capsule.OpFabrics) {
		if c.IsConnect() && capsule.ParseConnect(&c).QID == 1 {
			return &c.SGL
		}
	}
	return nil
}

// transferOnce keeps an I/O command outstanding while the target uses its region.
func transferOnce(t *testing.T, write bool, f func(c *call)) (tg *target, o *Options, err error) {
	tg, o = newTarget(t), pipeOptions(t)
	o.Queues, o.Retries = 2, -1
	n := disk(t, connect(t, tg, o))
	op := capsule.OpRead
	if write {
		op = capsule.OpWrite
	}
	tg.script(only(op, func(c *call) bool { f(c); return true }))
	if write {
		_, err = n.WriteAt(pattern(8192, 9), 0)
	} else {
		_, err = n.ReadAt(make([]byte, 8192), 0)
	}
	return tg, o, err
}

// TestHOST_9_RegionAllowsOneThing: any other access to the region ends the connection on which it came.
func TestHOST_9_RegionAllowsOneThing(t *testing.T) {
	ctx := context.Background()
	read := func(q *targetQueue, b iwarp.RemoteBuffer) {
		_ = q.qp.RDMARead(ctx, q.dataMR.Slice(0, int(b.Len)), b)
	}
	write := func(q *targetQueue, b iwarp.RemoteBuffer) {
		_ = q.qp.RDMAWrite(ctx, b, q.dataMR.Slice(0, int(b.Len)))
		<-q.qp.Done() // the host finds the error
	}
	other := func(q *targetQueue) *targetQueue {
		for _, e := range q.tg.live() {
			if e.qid > 0 && e != q {
				return e
			}
		}
		return nil
	}
	for name, x := range map[string]struct {
		write  bool
		access func(c *call)
		want   error
	}{
		"a Write to the data of a Write": {true, func(c *call) { write(c.q, c.remote()) }, iwarp.ErrAccess},
		"a Read of the sink of a Read":   {false, func(c *call) { read(c.q, c.remote()) }, iwarp.ErrAccess},
		"a Read behind the end":          {true, func(c *call) { b := c.remote(); b.Len++; read(c.q, b) }, iwarp.ErrBounds},
		"a Write behind the end":         {false, func(c *call) { b := c.remote(); b.Len++; write(c.q, b) }, iwarp.ErrBounds},
		"a Write in front of the region": {false, func(c *call) { b := c.remote(); b.TO--; write(c.q, b) }, iwarp.ErrBounds},
		"another connection reads it":    {true, func(c *call) { read(other(c.q), c.remote()) }, iwarp.ErrInvalidSTag},
		"another connection writes it":   {false, func(c *call) { write(other(c.q), c.remote()) }, iwarp.ErrInvalidSTag},
		"another connection invalidates it": {false, func(c *call) {
			q := other(c.q)
			q.send(&capsule.CQE{SQID: q.qid}, stag.STag(c.data.STag))
			<-q.qp.Done()
		}, iwarp.ErrInvalidSTag},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				_, _, err := transferOnce(t, x.write, x.access)
				require.ErrorIs(t, err, ErrLost)
				var terminate *iwarp.TerminateError
				require.ErrorAs(t, err, &terminate)
				if !errors.Is(x.want, iwarp.ErrInvalidSTag) {
					require.ErrorIs(t, err, x.want)
				}
			})
		})
	}
}

func TestHOST_9_KeysDiffer(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		n := disk(t, connect(t, tg, pipeOptions(t)))
		keys := map[uint32]bool{}
		for range 600 {
			_, err := n.ReadAt(make([]byte, 4096), 0)
			require.NoError(t, err)
		}
		var last capsule.SQE
		for _, c := range tg.commands(capsule.OpRead) {
			require.NotEqual(t, last.SGL.Key(), c.SGL.Key())
			keys[c.SGL.Key()] = true
			last = c
		}
		require.Greater(t, len(keys), 300)
	})
}

// TestHOST_10_InvalidatesAnother: the target may invalidate only the region of the command that it answers.
func TestHOST_10_InvalidatesAnother(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		o.Retries = -1
		n := disk(t, connect(t, tg, o))
		var h held
		tg.script(only(capsule.OpRead, h.hold))
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := n.ReadAt(make([]byte, 4096), 0)
				errs <- err
			}()
		}
		synctest.Wait()
		calls := h.calls()
		require.Len(t, calls, 2)
		_ = calls[0].put(0, pattern(4096, 0))
		calls[0].answerWith(0, capsule.Success, stag.STag(calls[1].data.STag))
		for range 2 {
			err := <-errs
			require.ErrorIs(t, err, ErrLost)
			require.ErrorIs(t, err, capsule.ErrMalformed)
		}
	})
}

// TestHOST_10_InvalidatesForFlush: a command without data has nothing to invalidate.
func TestHOST_10_InvalidatesForFlush(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		o.Retries = -1
		n := disk(t, connect(t, tg, o))
		var h held
		tg.script(func(c *call) bool { return c.q.qid > 0 && h.hold(c) })
		errs := make(chan error, 2)
		go func() { errs <- n.Flush(context.Background()) }()
		go func() {
			_, err := n.ReadAt(make([]byte, 4096), 0)
			errs <- err
		}()
		synctest.Wait()
		calls := h.calls()
		if calls[0].Opcode == capsule.OpRead {
			calls[0], calls[1] = calls[1], calls[0]
		}
		calls[0].answerWith(0, capsule.Success, stag.STag(calls[1].data.STag))
		for range 2 {
			require.ErrorIs(t, <-errs, capsule.ErrMalformed)
		}
	})
}

// TestHOST_11_NoInvalidation: if the target does not invalidate the region, the host does before the call returns. An
// access to the region by the target then ends the connection.
func TestHOST_11_NoInvalidation(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		o.Retries = -1
		n := disk(t, connect(t, tg, o))
		var kept *call
		tg.script(only(capsule.OpRead, func(c *call) bool {
			kept = c
			_ = c.put(0, pattern(int(c.data.Length), 3))
			c.answerWith(0, capsule.Success, 0)
			return true
		}))
		p := make([]byte, 8192)
		for range 300 { // every slot is used again
			_, err := n.ReadAt(p, 0)
			require.NoError(t, err)
		}
		require.Equal(t, pattern(8192, 3), p)
		_ = kept.put(0, pattern(8192, 4))
		<-kept.q.qp.Done()
		require.ErrorIs(t, kept.q.qp.Err(), iwarp.ErrInvalidSTag)
		require.Equal(t, pattern(8192, 3), p)
	})
}

func TestHOST_13_ResponsesToNothing(t *testing.T) {
	for name, bad := range map[string]func(c *call){
		"twice":               func(c *call) { c.answer(0, capsule.Success); c.answer(0, capsule.Success) },
		"another slot":        func(c *call) { c.CID ^= 1; c.answer(0, capsule.Success) },
		"a slot that is none": func(c *call) { c.CID |= slotMask; c.answer(0, capsule.Success) },
		"another generation":  func(c *call) { c.CID ^= 0x1000; c.answer(0, capsule.Success) },
		"another queue":       func(c *call) { c.q.send(&capsule.CQE{CID: c.CID, SQID: 2}, 0) },
		"a slot that was never used": func(c *call) {
			for _, q := range c.q.tg.live() {
				if q.qid == 0 {
					q.send(&capsule.CQE{}, 0)
				}
			}
		},
		"15 octets":      func(c *call) { _ = c.q.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: make([]byte, 15)}) },
		"17 octets":      func(c *call) { _ = c.q.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: make([]byte, 17)}) },
		"Immediate Data": func(c *call) { _ = c.q.qp.PostSend(iwarp.SendWR{Op: iwarp.OpImmediate}) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				tg, o := newTarget(t), pipeOptions(t)
				o.Retries = -1
				c := connect(t, tg, o)
				n := disk(t, c)
				tg.script(only(capsule.OpFlush, func(c *call) bool { bad(c); return true }))
				err := n.Flush(context.Background())
				if name != "twice" {
					require.ErrorIs(t, err, ErrLost)
					require.ErrorIs(t, err, capsule.ErrMalformed)
				}
				e := event(t, c, EventDisconnected)
				require.ErrorIs(t, e.Err, capsule.ErrMalformed)
			})
		})
	}
}

// TestHOST_13_LateSecondResponse: the next use of the slot has another CID.
func TestHOST_13_LateSecondResponse(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		o.Retries, o.QueueSize = -1, 2
		c := connect(t, tg, o)
		n := disk(t, c)
		var first *call
		tg.script(only(capsule.OpFlush, func(c *call) bool {
			if first == nil {
				first = c
				return false
			}
			first.answer(0, capsule.Success)
			return true
		}))
		require.NoError(t, n.Flush(context.Background()))
		require.ErrorIs(t, n.Flush(context.Background()), capsule.ErrMalformed)
	})
}

// TestHOST_14_ShortData: a response may not report success for octets that the target has not moved.
func TestHOST_14_ShortData(t *testing.T) {
	const size = 8192
	type pieces [][2]int
	for name, x := range map[string]struct {
		pieces pieces
		whole  bool
	}{
		"nothing":                        {nil, false},
		"the last octet is missing":      {pieces{{0, size - 1}}, false},
		"the first octet is missing":     {pieces{{1, size}}, false},
		"a gap":                          {pieces{{0, 100}, {101, size}}, false},
		"twice the same":                 {pieces{{0, size / 2}, {0, size / 2}}, false},
		"two pieces, the last one first": {pieces{{100, size}, {0, 100}}, true},
		"overlapping pieces":             {pieces{{0, 300}, {200, 5000}, {4000, size}, {7, 9}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				tg := newTarget(t)
				n := disk(t, connect(t, tg, pipeOptions(t)))
				data := pattern(size, 5)
				tg.script(only(capsule.OpRead, func(c *call) bool {
					for _, p := range x.pieces {
						_ = c.put(p[0], data[p[0]:p[1]])
					}
					c.answer(0, capsule.Success)
					return true
				}))
				canary := pattern(size, 0xaa)
				got, err := n.ReadAt(canary, 0)
				if x.whole {
					require.NoError(t, err)
					require.Equal(t, data, canary)
					return
				}
				require.ErrorIs(t, err, ErrShortData)
				require.Zero(t, got)
			})
		})
	}
}

// TestHOST_14_DataNotFetched: a Write whose data the target has not fetched was not carried out, whatever the target says.
func TestHOST_14_DataNotFetched(t *testing.T) {
	for _, fetched := range []uint32{0, 1, 8191, 8192} {
		virtual(t, func(t *testing.T) {
			_, _, err := transferOnce(t, true, func(c *call) {
				b := c.remote()
				b.Len = fetched
				_ = c.q.qp.RDMARead(context.Background(), c.q.dataMR.Slice(0, int(fetched)), b)
				c.answer(0, capsule.Success)
			})
			if fetched == 8192 {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrShortData)
		})
	}
}

// TestHOST_14_ErrorWithoutData: the data moved for a command that fails does not matter.
func TestHOST_14_ErrorWithoutData(t *testing.T) {
	virtual(t, func(t *testing.T) {
		_, _, err := transferOnce(t, false, func(c *call) { c.answer(0, capsule.StatusReadError) })
		require.ErrorIs(t, err, capsule.StatusError{Status: capsule.StatusReadError})
	})
}
