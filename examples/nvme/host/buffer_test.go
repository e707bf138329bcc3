package host

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// ways are the ways in which a call can return while the target still has the region of its command.
var ways = map[string]struct {
	end  func(t *testing.T, c *Controller, cancel func(), k *call)
	want error
	goes bool // the command goes on
}{
	"error status": {func(_ *testing.T, _ *Controller, _ func(), k *call) {
		k.answerWith(0, capsule.StatusInternalError, 0)
	}, capsule.StatusError{Status: capsule.StatusInternalError}, false},
	"timeout":         {func(*testing.T, *Controller, func(), *call) { time.Sleep(31 * time.Second) }, ErrTimeout, false},
	"cancel":          {func(_ *testing.T, _ *Controller, cancel func(), _ *call) { cancel() }, context.Canceled, true},
	"close":           {func(_ *testing.T, c *Controller, _ func(), _ *call) { go c.Close() }, ErrClosed, false},
	"connection lost": {func(_ *testing.T, _ *Controller, _ func(), k *call) { k.q.qp.Abort() }, ErrLost, false},
	"admin queue lost": {func(_ *testing.T, _ *Controller, _ func(), k *call) {
		for _, q := range k.q.tg.live() {
			if q.qid == 0 {
				q.qp.Abort()
			}
		}
	}, ErrLost, false},
}

// An unanswered is a command with its data in a buffer of 8 KiB, which the target has received and not answered.
type unanswered struct {
	target *target
	n      *Namespace
	p      []byte
	call   *call
	end    func() // ends the call in the way under test
}

// eachWay runs a test for each way in which a command can end.
func eachWay(t *testing.T, op capsule.Opcode, do func(ctx context.Context, n *Namespace, p []byte) error, f func(t *testing.T, u *unanswered, goes bool)) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				tg, o := newTarget(t), pipeOptions(t)
				o.Retries, o.CtrlLoss = -1, -1
				c := connect(t, tg, o)
				u := &unanswered{target: tg, n: disk(t, c), p: pattern(8192, 0xaa)}
				var h held
				tg.script(only(op, h.hold))
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				errs := make(chan error, 1)
				go func() { errs <- do(ctx, u.n, u.p) }()
				synctest.Wait()
				u.call = h.calls()[0]
				u.end = func() {
					way.end(t, c, cancel, u.call)
					require.ErrorIs(t, <-errs, way.want)
				}
				f(t, u, way.goes)
			})
		})
	}
}

// TestHOST_12_ReadBuffer: a Read's buffer stays as it was when the call returned, whatever the target writes afterwards.
func TestHOST_12_ReadBuffer(t *testing.T) {
	read := func(ctx context.Context, n *Namespace, p []byte) error {
		_, err := n.ReadAtContext(ctx, p, 0)
		return err
	}
	eachWay(t, capsule.OpRead, read, func(t *testing.T, u *unanswered, goes bool) {
		_ = u.call.put(0, pattern(100, 1)) // this is still allowed
		synctest.Wait()
		u.end()
		copy(u.p, pattern(8192, 0xbb))
		_ = u.call.put(0, pattern(8192, 2))
		synctest.Wait()
		require.Equal(t, pattern(8192, 0xbb), u.p)
		if !goes {
			return
		}
		u.call.answer(0, capsule.Success)
		u.target.script(nil)
		_, err := u.n.ReadAt(u.p, 0)
		require.NoError(t, err, "the connection goes on")
	})
}

// TestHOST_12_WriteBuffer: the target never gets octets that the caller puts into the buffer after the call has returned.
func TestHOST_12_WriteBuffer(t *testing.T) {
	write := func(ctx context.Context, n *Namespace, p []byte) error {
		_, err := n.WriteAtContext(ctx, p, 0)
		return err
	}
	eachWay(t, capsule.OpWrite, write, func(t *testing.T, u *unanswered, goes bool) {
		u.end()
		copy(u.p, pattern(8192, 0xbb))
		data, err := u.call.fetch()
		if !goes {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Equal(t, pattern(8192, 0xaa), data, "what was to be written is written")
		u.call.answer(0, capsule.Success)
		u.target.script(nil)
		_, err = u.n.WriteAt(u.p, 0)
		require.NoError(t, err, "the connection goes on")
	})
}

// TestHOST_12_CancelledCommandsKeepTheirSlots: a call may also return before the response to a command without data, or
// with data in its capsule. Its slot is reused only after the response.
func TestHOST_12_CancelledCommandsKeepTheirSlots(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		o.QueueSize = 4
		n := disk(t, connect(t, tg, o))
		var h held
		tg.script(func(c *call) bool { return c.q.qid > 0 && h.hold(c) })
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				var err error
				switch i % 3 {
				case 0:
					err = n.Flush(ctx)
				case 1:
					_, err = n.WriteAtContext(ctx, pattern(4096, 1), 0)
				case 2:
					_, err = n.ReadAtContext(ctx, pattern(4096, 1), 0)
				}
				require.ErrorIs(t, err, context.Canceled)
			})
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		require.ErrorIs(t, n.Flush(ctx), context.Canceled)
		calls := h.calls()
		require.Len(t, calls, 3)
		done := make(chan error, 1)
		go func() { done <- n.Flush(context.Background()) }()
		synctest.Wait()
		require.Empty(t, h.calls(), "no slot is free")
		tg.script(nil)
		for _, k := range calls {
			k.execute()
		}
		require.NoError(t, <-done)
	})
}

// TestHOST_12_CancelledCommandTimesOut: a command whose call has returned still has its timeout.
func TestHOST_12_CancelledCommandTimesOut(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		c := connect(t, tg, pipeOptions(t))
		n := disk(t, c)
		tg.script(only(capsule.OpFlush, func(*call) bool { return true }))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, n.Flush(ctx), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		require.ErrorIs(t, event(t, c, EventDisconnected).Err, ErrTimeout)
		require.Equal(t, 30*time.Second, time.Since(start))
	})
}

// TestHOST_12_ConnectionThatHasNotEnded: a call returns before its connection has ended. Its region is still VALID then,
// but gives no access to the buffer.
func TestHOST_12_ConnectionThatHasNotEnded(t *testing.T) {
	for _, write := range []bool{true, false} {
		virtual(t, func(t *testing.T) {
			tg := newTarget(t)
			c := connect(t, tg, pipeOptions(t))
			n := disk(t, c)
			var h held
			tg.script(func(c *call) bool { return c.q.qid > 0 && h.hold(c) })
			p := pattern(8192, 0xaa)
			q := c.assoc.io[0]
			errs := make(chan error, 1)
			go func() {
				m := capsule.RW{Opcode: capsule.OpRead, NSID: n.nsid, NLB: 1}
				if write {
					m.Opcode = capsule.OpWrite
				}
				_, err := q.do(context.Background(), &command{sqe: m.SQE(0, capsule.SGL{}), data: p})
				errs <- err
			}()
			synctest.Wait()
			k := h.calls()[0]
			require.True(t, q.kill(ErrTimeout))
			require.ErrorIs(t, <-errs, ErrTimeout)
			require.Len(t, tg.live(), 2)
			copy(p, pattern(8192, 0xbb))
			if write {
				_, err := k.fetch()
				require.Error(t, err)
				return
			}
			_ = k.put(0, pattern(8192, 2))
			synctest.Wait()
			require.Equal(t, pattern(8192, 0xbb), p)
		})
	}
}
