package host

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

func TestHOST_17_KeepAlive(t *testing.T) {
	for ctratt, interval := range map[uint32]time.Duration{0: 2 * time.Second, capsule.CTRATTTrafficBased: time.Second} {
		virtual(t, func(t *testing.T) {
			tg, o := newTarget(t), pipeOptions(t)
			tg.id.CTRATT, o.KATO = ctratt, 4*time.Second
			connect(t, tg, o)
			time.Sleep(60*time.Second + time.Millisecond)
			require.Len(t, tg.commands(capsule.OpKeepAlive), int(60*time.Second/interval))
			require.Len(t, tg.live(), 2)
		})
	}
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		connect(t, tg, pipeOptions(t))
		time.Sleep(time.Hour)
		require.Empty(t, tg.commands(capsule.OpKeepAlive))
	})
}

// TestHOST_17_KeepAliveWhileConnecting: the target's timer starts at Connect, and connecting the I/O queues may take
// longer than its timeout.
func TestHOST_17_KeepAliveWhileConnecting(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		tg.id.CTRATT, o.KATO, o.Queues = 0, 4*time.Second, 4
		tg.script(func(c *call) bool {
			if c.IsConnect() && c.q.qid > 0 {
				time.Sleep(3 * time.Second)
			}
			return false
		})
		connect(t, tg, o)
		require.GreaterOrEqual(t, len(tg.commands(capsule.OpKeepAlive)), 5)
	})
}

// TestHOST_17_KeepAliveOfFullQueue: Keep Alive does not wait behind other admin commands.
func TestHOST_17_KeepAliveOfFullQueue(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		tg.id.CTRATT, o.KATO, o.Retries = 0, 4*time.Second, -1
		c := connect(t, tg, o)
		var h held
		tg.script(func(c *call) bool { return c.q.qid == 0 && c.Opcode == capsule.OpIdentify && h.hold(c) })
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				_, err := c.Namespaces(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		wg.Wait()
		require.GreaterOrEqual(t, len(tg.commands(capsule.OpKeepAlive)), 9)
		require.Len(t, h.calls(), 29)
		require.Len(t, tg.live(), 2)
	})
}

func TestHOST_17_KeepAliveNotAnswered(t *testing.T) {
	for refused, want := range map[bool]error{false: ErrTimeout, true: capsule.StatusError{Status: capsule.StatusInvalidOpcode}} {
		virtual(t, func(t *testing.T) {
			tg, o := newTarget(t), pipeOptions(t)
			tg.id.CTRATT, o.KATO = 0, 4*time.Second
			c := connect(t, tg, o)
			start := time.Now()
			tg.script(func(c *call) bool {
				if c.Opcode != capsule.OpKeepAlive || c.q.qid != 0 {
					return false
				}
				if refused {
					c.answer(0, capsule.StatusInvalidOpcode)
				}
				return true
			})
			require.ErrorIs(t, event(t, c, EventDisconnected).Err, want)
			if !refused {
				require.Equal(t, 6*time.Second, time.Since(start))
			}
			tg.script(nil)
			event(t, c, EventReconnected)
		})
	}
}

func TestHOST_18_Timeout(t *testing.T) {
	for _, retries := range []int{-1, 1} {
		virtual(t, func(t *testing.T) {
			tg, o := newTarget(t), pipeOptions(t)
			o.Queues, o.Retries = 3, retries
			c := connect(t, tg, o)
			n := disk(t, c)
			var h held
			tg.script(only(capsule.OpRead, h.hold))
			start := time.Now()
			errs := make(chan error, 10)
			for range 10 {
				go func() {
					_, err := n.ReadAt(make([]byte, 4096), 0)
					errs <- err
				}()
				time.Sleep(time.Second)
			}
			e := event(t, c, EventDisconnected)
			require.ErrorIs(t, e.Err, ErrTimeout)
			require.Equal(t, 30*time.Second, time.Since(start))
			tg.script(nil)
			for range 10 {
				err := <-errs
				if retries > 0 {
					require.NoError(t, err)
					continue
				}
				var lost *LostError
				require.ErrorAs(t, err, &lost)
				require.Same(t, e.Err, lost.Cause, "all have one cause")
				require.True(t, lost.Sent)
			}
			if retries < 0 {
				require.Equal(t, 30*time.Second, time.Since(start))
				event(t, c, EventReconnected)
			}
			require.Equal(t, 40*time.Second, time.Since(start).Truncate(time.Second))
			require.Len(t, tg.live(), 4)
			require.NoError(t, n.Flush(context.Background()))
		})
	}
}

func TestHOST_18_TimeoutOfAdminCommand(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		c := connect(t, tg, pipeOptions(t))
		start := time.Now()
		tg.script(func(c *call) bool { return c.q.qid == 0 && c.Opcode == capsule.OpIdentify })
		_, err := c.Namespaces(context.Background())
		require.ErrorIs(t, err, ErrTimeout)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

// TestHOST_18_NotLate: a command answered in time is not late, however late the next command of its slot is.
func TestHOST_18_NotLate(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		o.QueueSize = 2
		c := connect(t, tg, o)
		n := disk(t, c)
		tg.script(only(capsule.OpFlush, func(*call) bool { time.Sleep(29 * time.Second); return false }))
		for range 5 {
			require.NoError(t, n.Flush(context.Background()))
		}
		time.Sleep(time.Hour)
		require.Empty(t, c.Events())
	})
}

func TestHOST_18_GivenUp(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		o.CtrlLoss = time.Minute
		c := connect(t, tg, o)
		n := disk(t, c)
		tg.mu.Lock()
		tg.reject = func(capsule.Request) []byte { return capsule.RejectNoResources.Append(nil) }
		tg.mu.Unlock()
		start := time.Now()
		tg.lose()
		err := n.Flush(context.Background())
		require.ErrorIs(t, err, ErrLost)
		require.ErrorIs(t, err, capsule.RejectError{Status: capsule.RejectNoResources})
		require.Equal(t, time.Minute, time.Since(start))
		require.ErrorIs(t, err, c.Err())
		event(t, c, EventGivenUp)
		_, err = c.Namespaces(context.Background())
		require.ErrorIs(t, err, ErrLost)
		require.ErrorIs(t, c.Reset(context.Background()), ErrLost)
	})
}

// TestHOST_18_SentBefore: a command that was sent, and for whatever reason cannot be sent again, may have been carried
// out. Its error says so.
func TestHOST_18_SentBefore(t *testing.T) {
	for name, c := range map[string]struct {
		loss time.Duration
		end  func(tg *target, c *Controller)
		want error
	}{
		"given up": {-1, func(*target, *Controller) {}, ErrLost},
		"closed": {0, func(_ *target, c *Controller) {
			time.Sleep(time.Second)
			c.Close()
		}, ErrClosed},
		"replaced": {0, func(tg *target, _ *Controller) {
			tg.replace(1, tg.namespaces[1].clone(func(v *volume) { v.names.UUID[0]++ }))
		}, ErrReplaced},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				tg, o := newTarget(t), pipeOptions(t)
				o.CtrlLoss = c.loss
				ctrl := connect(t, tg, o)
				n := disk(t, ctrl)
				var h held
				tg.script(only(capsule.OpWrite, h.hold))
				errs := make(chan error, 1)
				go func() {
					_, err := n.WriteAt(make([]byte, 4096), 0)
					errs <- err
				}()
				synctest.Wait()
				tg.script(nil)
				tg.lose()
				c.end(tg, ctrl)
				err := <-errs
				require.ErrorIs(t, err, c.want)
				var lost *LostError
				require.ErrorAs(t, err, &lost)
				require.True(t, lost.Sent)
				require.ErrorIs(t, err, ErrLost)

				_, err = n.WriteAt(make([]byte, 4096), 0)
				require.ErrorIs(t, err, c.want)
				if errors.As(err, &lost) {
					require.False(t, lost.Sent, "of one that comes later nothing was sent")
				}
			})
		})
	}
}

// TestHOST_20_ConnectWithDNR: a Connect that is refused with DNR is not repeated.
func TestHOST_20_ConnectWithDNR(t *testing.T) {
	for _, dnr := range []bool{true, false} {
		virtual(t, func(t *testing.T) {
			tg, o := newTarget(t), pipeOptions(t)
			c := connect(t, tg, o)
			n := disk(t, c)
			status := capsule.StatusConnectHost.WithoutDNR()
			if dnr {
				status = status.WithDNR()
			}
			tries := 0
			tg.script(func(c *call) bool {
				if !c.IsConnect() || tries == 3 {
					return false
				}
				tries++
				c.answer(0, status)
				return true
			})
			tg.lose()
			err := n.Flush(context.Background())
			if !dnr {
				require.NoError(t, err)
				require.Equal(t, 3, tries)
				return
			}
			require.ErrorIs(t, err, capsule.StatusError{Status: status})
			require.Equal(t, 1, tries)
		})
	}
}

// TestHOST_20_IOConnectWithDNR: a refusal on an I/O queue concerns a controller that the next attempt does not use. Here
// that controller has ended meanwhile.
func TestHOST_20_IOConnectWithDNR(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		c := connect(t, tg, o)
		n := disk(t, c)
		tries := 0
		tg.script(func(c *call) bool {
			if !c.IsConnect() || c.q.qid == 0 || tries == 2 {
				return false
			}
			tries++
			c.answer(uint64(capsule.ParamCNTLID.DW0()), capsule.StatusConnectParameter)
			return true
		})
		tg.lose()
		require.NoError(t, n.Flush(context.Background()))
		for range 2 {
			failed := event(t, c, EventConnectFailed)
			require.ErrorIs(t, failed.Err, capsule.StatusError{Status: capsule.StatusConnectParameter})
			require.ErrorContains(t, failed.Err, "queue 1")
		}
		event(t, c, EventReconnected)
	})
}

func TestHOST_21_Events(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		var parked []*call
		tg.script(func(c *call) bool {
			if c.q.qid == 0 && c.Opcode == capsule.OpAsyncEvent {
				parked = append(parked, c)
			}
			return false
		})
		c := connect(t, tg, pipeOptions(t))
		n := disk(t, c)
		set := tg.commands(capsule.OpSetFeatures)
		require.Equal(t, capsule.SetFeatures{FID: capsule.FeatureAsyncEvents, Value: capsule.NoticeNamespaces}, capsule.ParseSetFeatures(&set[1]))
		synctest.Wait()
		for i := range 5 {
			require.Len(t, parked, i+1, "armed again after each event")
			tg.replace(1, tg.namespaces[1].clone(func(v *volume) { v.id.NSZE++ }))
			tg.mu.Lock()
			tg.changed = []uint32{1, 5}
			tg.mu.Unlock()
			parked[i].answer(uint64(capsule.EventNamespaceChanged.DW0()), capsule.Success)
			e := <-c.Events()
			require.Equal(t, Event{Kind: EventNamespaces, Async: capsule.EventNamespaceChanged, NSIDs: []uint32{1, 5}}, e)
			require.Equal(t, int64(0x4000+i+1)*4096, n.Size())
			logs := tg.commands(capsule.OpGetLogPage)
			require.Len(t, logs, i+1)
			m := capsule.ParseGetLogPage(&logs[i])
			require.Equal(t, capsule.NewGetLogPage(capsule.LogChangedNamespaces, 0, 4096, false), m)
		}
		health := capsule.AsyncEvent{Type: capsule.EventHealth, Info: 1, LID: capsule.LogSMART}
		parked[5].answer(uint64(health.DW0()), capsule.Success)
		require.Equal(t, Event{Kind: EventAsync, Async: health}, <-c.Events())
		require.Len(t, tg.commands(capsule.OpGetLogPage), 6)
		require.NoError(t, c.Close())
		_, open := <-c.Events()
		require.False(t, open)
	})
}

func TestHOST_21_EventsAreRefused(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		tg.script(func(c *call) bool {
			if c.q.qid != 0 || c.Opcode != capsule.OpAsyncEvent {
				return false
			}
			c.answer(0, capsule.StatusAsyncEventLimit)
			return true
		})
		c := connect(t, tg, pipeOptions(t))
		require.ErrorIs(t, event(t, c, EventAsync).Err, capsule.StatusError{Status: capsule.StatusAsyncEventLimit})
		time.Sleep(time.Hour)
		require.Len(t, tg.commands(capsule.OpAsyncEvent), 1)
		require.Len(t, tg.live(), 2)
	})
}

// TestHOST_21_EventsCannotBeEnabled: if a target reports events and refuses their configuration, its namespaces are
// usable all the same.
func TestHOST_21_EventsCannotBeEnabled(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		tg.script(func(c *call) bool {
			if c.Opcode != capsule.OpSetFeatures || capsule.ParseSetFeatures(&c.SQE).FID != capsule.FeatureAsyncEvents {
				return false
			}
			c.answer(0, capsule.StatusInvalidField)
			return true
		})
		c := connect(t, tg, pipeOptions(t))
		_, err := disk(t, c).WriteAt(pattern(4096, 1), 0)
		require.NoError(t, err)
		want := Event{Kind: EventAsync, Err: capsule.StatusError{Status: capsule.StatusInvalidField}}
		require.Equal(t, want, <-c.Events())
		synctest.Wait()
		require.Len(t, tg.commands(capsule.OpAsyncEvent), 1, "there are events that need not be enabled")
		require.NoError(t, c.Reset(context.Background()))
		require.Equal(t, want, event(t, c, EventAsync))
	})
}

// TestHOST_21_PersistentInternalError: a controller with a persistent internal error is replaced, as the specification
// demands. A transient one changes nothing.
func TestHOST_21_PersistentInternalError(t *testing.T) {
	for info, replaced := range map[uint8]bool{capsule.EventPersistentError: true, 4: false} {
		virtual(t, func(t *testing.T) {
			tg := newTarget(t)
			e := capsule.AsyncEvent{Type: capsule.EventError, Info: info, LID: capsule.LogError}
			tg.script(func(c *call) bool {
				if c.q.qid != 0 || c.Opcode != capsule.OpAsyncEvent || len(tg.commands(capsule.OpAsyncEvent)) > 1 {
					return false
				}
				c.answer(uint64(e.DW0()), capsule.Success)
				return true
			})
			c := connect(t, tg, pipeOptions(t))
			require.Equal(t, Event{Kind: EventAsync, Async: e}, <-c.Events())
			if replaced {
				require.Equal(t, Event{Kind: EventDisconnected, Err: errPersistent}, <-c.Events())
				event(t, c, EventReconnected)
			}
			_, err := disk(t, c).WriteAt(pattern(4096, 1), 0)
			require.NoError(t, err)
			tg.mu.Lock()
			defer tg.mu.Unlock()
			require.Equal(t, replaced, len(tg.connects) > 2, "the admin queue and an I/O queue, of each controller")
		})
	}
}

// TestHOST_21_EventsDuringAReset: a disabled target ends the request for an event. That is not a refusal.
func TestHOST_21_EventsDuringAReset(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		var parked *call
		tg.script(func(c *call) bool {
			if c.q.qid != 0 {
				return false
			}
			switch p := capsule.ParseProperty(&c.SQE); {
			case c.Opcode == capsule.OpAsyncEvent:
				parked = c
				return true
			case c.Opcode == capsule.OpFabrics && p.Set && p.Value&1 == 0 && parked != nil:
				parked.answer(0, capsule.StatusAbortRequested)
				parked = nil
			}
			return false
		})
		c := connect(t, tg, pipeOptions(t))
		synctest.Wait()
		require.NoError(t, c.Reset(context.Background()))
		require.Equal(t, Event{Kind: EventDisconnected, Err: ErrReset}, <-c.Events())
		require.Equal(t, Event{Kind: EventReconnected}, <-c.Events())
	})
}

// TestHOST_21_EventsThatAreNotTaken: a program that takes no events stops nothing.
func TestHOST_21_EventsThatAreNotTaken(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		events := 0
		tg.script(func(c *call) bool {
			if c.q.qid != 0 || c.Opcode != capsule.OpAsyncEvent || events == 200 {
				return false
			}
			events++
			c.answer(uint64(capsule.EventNamespaceChanged.DW0()), capsule.Success)
			return true
		})
		c := connect(t, tg, pipeOptions(t))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, 200, events)
		require.Len(t, c.Events(), maxEvents)
		require.Len(t, tg.live(), 2)
	})
}

func TestHOST_23_Close(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		o.KATO, o.Queues = time.Second, 2
		c := connect(t, tg, o)
		n := disk(t, c)
		require.NoError(t, n.Flush(context.Background()))
		first := true
		tg.script(func(c *call) bool {
			if p := capsule.ParseProperty(&c.SQE); c.FCType() == capsule.FCPropertySet && p.Set && first {
				first = false
				synctest.Wait() // the other end of a connection ends a moment later
				require.Len(t, tg.live(), 1, "the I/O queues are closed first")
			}
			return false
		})
		require.NoError(t, c.Close())
		require.Equal(t, uint32(0x464061), tg.ccs()[2])
		synctest.Wait()
		require.Empty(t, tg.live())
		for _, q := range tg.queues {
			require.NoError(t, q.qp.Err(), "gracefully")
		}
		require.NoError(t, c.Close())
		require.ErrorIs(t, n.Flush(context.Background()), ErrClosed)
		require.ErrorIs(t, c.Reset(context.Background()), ErrClosed)
		require.ErrorIs(t, c.Err(), ErrClosed)
	})
}

func TestHOST_23_CloseWithoutShutdown(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		c := connect(t, tg, pipeOptions(t))
		tg.script(func(c *call) bool {
			if p := capsule.ParseProperty(&c.SQE); c.FCType() != capsule.FCPropertyGet || c.Opcode != capsule.OpFabrics || p.Offset != capsule.PropCSTS {
				return false
			}
			c.answer(uint64(capsule.CSTS{RDY: true, SHST: capsule.SHSTOccurring}.Value()), capsule.Success)
			return true
		})
		start := time.Now()
		require.ErrorIs(t, c.Close(), ErrTimeout)
		require.Equal(t, 5*time.Second, time.Since(start))
	})
}

// TestHOST_23_CloseWhileDisconnected: Close ends everything that waits, even without connections.
func TestHOST_23_CloseWhileDisconnected(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		c := connect(t, tg, pipeOptions(t))
		n := disk(t, c)
		tg.lose()
		errs := make(chan error, 1)
		go func() { errs <- n.Flush(context.Background()) }()
		time.Sleep(5 * time.Second)
		start := time.Now()
		require.NoError(t, c.Close())
		require.ErrorIs(t, <-errs, ErrClosed)
		require.Zero(t, time.Since(start))
	})
}

func TestReset(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		c := connect(t, tg, pipeOptions(t))
		n := disk(t, c)
		var h held
		tg.script(only(capsule.OpFlush, h.hold))
		errs := make(chan error, 1)
		go func() { errs <- n.Flush(context.Background()) }()
		synctest.Wait()
		tg.script(nil)
		start := time.Now()
		require.NoError(t, c.Reset(context.Background()))
		require.Zero(t, time.Since(start))
		require.NoError(t, <-errs, "sent again")
		require.Equal(t, []uint32{0x460060, 0x460061, 0x460060, 0x460060, 0x460061}, tg.ccs())
		require.Equal(t, uint16(2), tg.cntlid)
		require.Equal(t, ErrReset, event(t, c, EventDisconnected).Err)
		event(t, c, EventReconnected)

		refuse := errors.New("")
		tg.script(func(c *call) bool {
			if c.IsConnect() && refuse != nil {
				c.answer(0, capsule.StatusConnectBusy)
				return true
			}
			return false
		})
		require.ErrorIs(t, c.Reset(context.Background()), capsule.StatusError{Status: capsule.StatusConnectBusy})
		synctest.Wait()
		refuse = nil
		start = time.Now()
		require.NoError(t, c.Reset(context.Background()))
		event(t, c, EventReconnected)
		require.Zero(t, time.Since(start), "the delay is cut short")
	})
}
