package host

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// clone returns another namespace like v, without blocks.
func (v *volume) clone(change func(v *volume)) *volume {
	c := &volume{id: v.id, names: v.names, blocks: make(map[uint64][]byte)}
	change(c)
	return c
}

// replace changes a namespace of the target.
func (tg *target) replace(nsid uint32, v *volume) {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	if v == nil {
		delete(tg.namespaces, nsid)
	} else {
		tg.namespaces[nsid] = v
	}
}

func TestHOST_16_Namespaces(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		one := tg.namespaces[1]
		tg.replace(7, one.clone(func(v *volume) {
			v.names = capsule.Descriptors{NGUID: [16]byte{7}, EUI64: [8]byte{8}}
			v.id.LBAF[0].LBADS, v.id.NSZE, v.id.NSATTR, v.id.DLFEAT = 9, 1000, capsule.NSATTRWriteProtected, capsule.DLFEATZeroes
		}))
		c := connect(t, tg, pipeOptions(t))
		list, err := c.Namespaces(context.Background())
		require.NoError(t, err)
		require.Len(t, list, 2)
		n := list[0]
		require.Equal(t, one.names.UUID, n.UUID())
		require.Equal(t, []any{uint32(1), 4096, int64(64 << 20), false, false}, []any{n.NSID(), n.BlockSize(), n.Size(), n.ReadOnly(), n.TrimmedReadsZero()})
		n = list[1]
		require.Equal(t, []any{uint32(7), 512, int64(512000), true, true}, []any{n.NSID(), n.BlockSize(), n.Size(), n.ReadOnly(), n.TrimmedReadsZero()})
		require.Equal(t, [16]byte{7}, n.NGUID())
		require.Equal(t, [8]byte{8}, n.EUI64())
		again, err := c.Namespaces(context.Background())
		require.NoError(t, err)
		require.Same(t, list[1], again[1])
		_, err = n.ReadAt(make([]byte, 512), 512000-512)
		require.NoError(t, err)
	})
}

func TestHOST_16_ManyNamespaces(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		for i := range uint32(1024) {
			tg.namespaces[2*i+1] = tg.namespaces[1]
		}
		list, err := connect(t, tg, pipeOptions(t)).Namespaces(context.Background())
		require.NoError(t, err)
		require.Len(t, list, 1024)
	})
}

func TestHOST_16_HostileNamespaces(t *testing.T) {
	for name, change := range map[string]func(v *volume){
		"LBADS 0":           func(v *volume) { v.id.LBAF[0].LBADS = 0 },
		"LBADS 8":           func(v *volume) { v.id.LBAF[0].LBADS = 8 },
		"LBADS 63":          func(v *volume) { v.id.LBAF[0].LBADS = 63 },
		"LBADS 255":         func(v *volume) { v.id.LBAF[0].LBADS = 255 },
		"NSZE 2^64-1":       func(v *volume) { v.id.NSZE = 1<<64 - 1 },
		"NSZE 0":            func(v *volume) { v.id.NSZE = 0 },
		"NSZE 2^51":         func(v *volume) { v.id.NSZE = 1 << 51 },
		"metadata":          func(v *volume) { v.id.LBAF[0].MS = 8 },
		"format 3 of 1":     func(v *volume) { v.id.FLBAS = 3 },
		"LBA above MDTS":    func(v *volume) { v.id.LBAF[0].LBADS = 16 },
		"other command set": func(v *volume) { v.names.CSI = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				tg := newTarget(t)
				tg.id.MDTS = 3
				tg.replace(2, tg.namespaces[1].clone(change))
				list, err := connect(t, tg, pipeOptions(t)).Namespaces(context.Background())
				require.ErrorIs(t, err, capsule.ErrMalformed)
				require.ErrorContains(t, err, "namespace 2")
				require.Len(t, list, 1, "the other one can be used")
				_, err = list[0].ReadAt(make([]byte, 4096), 0)
				require.NoError(t, err)
			})
		})
	}
}

// TestNamespaceRemovedMeanwhile: a namespace removed during the host's look is left out, whatever the host has asked so
// far.
func TestNamespaceRemovedMeanwhile(t *testing.T) {
	for _, cns := range []uint8{capsule.CNSNamespace, capsule.CNSDescriptors} {
		virtual(t, func(t *testing.T) {
			tg := newTarget(t)
			c := connect(t, tg, pipeOptions(t))
			n := disk(t, c)
			tg.script(func(c *call) bool {
				if c.q.qid == 0 && c.Opcode == capsule.OpIdentify && capsule.ParseIdentify(&c.SQE).CNS == cns {
					c.answer(0, capsule.StatusInvalidNamespace)
					return true
				}
				return false
			})
			list, err := c.Namespaces(context.Background())
			require.NoError(t, err, "CNS %d", cns)
			require.Empty(t, list)
			require.ErrorIs(t, n.Err(), capsule.ErrInactive)
		})
	}
}

// TestHOST_16_HostileList: an unordered list ends the connections.
func TestHOST_16_HostileList(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		c := connect(t, tg, pipeOptions(t))
		tg.script(func(c *call) bool {
			if c.q.qid != 0 || c.Opcode != capsule.OpIdentify || capsule.ParseIdentify(&c.SQE).CNS != capsule.CNSNamespaceList {
				return false
			}
			page := make([]byte, capsule.PageSize)
			page[0], page[4] = 2, 1
			_ = c.put(0, page)
			c.answer(0, capsule.Success)
			return true
		})
		_, err := c.Namespaces(context.Background())
		require.ErrorIs(t, err, capsule.ErrMalformed)
		require.ErrorIs(t, event(t, c, EventDisconnected).Err, capsule.ErrMalformed)
	})
}

// lose ends all connections from the target's side.
func (tg *target) lose() {
	for _, q := range tg.live() {
		q.qp.Abort()
	}
}

func TestHOST_19_HandlesAfterReconnect(t *testing.T) {
	other := func(v *volume) { v.names.UUID[0]++ }
	for name, x := range map[string]struct {
		change func(tg *target)
		want   error
	}{
		"the same":           {func(*target) {}, nil},
		"larger":             {func(tg *target) { tg.replace(1, tg.namespaces[1].clone(func(v *volume) { v.id.NSZE *= 2 })) }, nil},
		"another UUID":       {func(tg *target) { tg.replace(1, tg.namespaces[1].clone(other)) }, ErrReplaced},
		"another NGUID":      {func(tg *target) { tg.replace(1, tg.namespaces[1].clone(func(v *volume) { v.names.NGUID[3] = 1 })) }, ErrReplaced},
		"another EUI64":      {func(tg *target) { tg.replace(1, tg.namespaces[1].clone(func(v *volume) { v.names.EUI64[3] = 1 })) }, ErrReplaced},
		"another LBA size":   {func(tg *target) { tg.replace(1, tg.namespaces[1].clone(func(v *volume) { v.id.LBAF[0].LBADS = 9 })) }, ErrReplaced},
		"another subsystem":  {func(tg *target) { tg.id.SN = "X" }, ErrReplaced},
		"gone":               {func(tg *target) { tg.replace(1, nil) }, capsule.ErrInactive},
		"no longer readable": {func(tg *target) { tg.replace(1, tg.namespaces[1].clone(func(v *volume) { v.id.NSZE = 0 })) }, capsule.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				tg := newTarget(t)
				c := connect(t, tg, pipeOptions(t))
				n := disk(t, c)
				size := n.Size()
				tg.lose()
				x.change(tg)
				event(t, c, EventReconnected)
				p := make([]byte, 4096)
				_, err := n.ReadAt(p, 0)
				if x.want == nil {
					require.NoError(t, err)
					require.NoError(t, n.Err())
					require.Same(t, n, disk(t, c))
					require.Equal(t, name == "larger", n.Size() > size)
					return
				}
				before := len(tg.commands(capsule.OpFlush))
				require.ErrorIs(t, err, x.want)
				require.ErrorIs(t, n.Err(), x.want)
				_, err = n.ReadAt(p, 1<<40)
				require.ErrorIs(t, err, x.want)
				require.ErrorIs(t, n.Flush(context.Background()), x.want)
				require.ErrorIs(t, n.Trim(context.Background(), Range{0, 4096}), x.want)
				require.ErrorIs(t, n.WriteZeroes(context.Background(), 0, 4096, false), x.want)
				require.Len(t, tg.commands(capsule.OpFlush), before)
				if !errors.Is(x.want, ErrReplaced) {
					return
				}
				require.NotSame(t, n, disk(t, c), "the new one has another handle")
				_, err = disk(t, c).ReadAt(p, 0)
				require.NoError(t, err)
			})
		})
	}
}

// TestHOST_19_WaitingCommand: a command that waits for the connections does not go to a namespace that has replaced its
// own.
func TestHOST_19_WaitingCommand(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		c := connect(t, tg, pipeOptions(t))
		n := disk(t, c)
		tg.lose()
		synctest.Wait()
		errs := make(chan error, 1)
		go func() {
			_, err := n.WriteAt(pattern(4096, 1), 0)
			errs <- err
		}()
		synctest.Wait()
		tg.replace(1, tg.namespaces[1].clone(func(v *volume) { v.names.UUID[0]++ }))
		require.ErrorIs(t, <-errs, ErrReplaced)
		require.Empty(t, tg.commands(capsule.OpWrite))
	})
}

// TestHOST_19_NamespaceIsNotReady: a namespace that is not ready when the host connects again becomes usable as soon as
// it is, without an event.
func TestHOST_19_NamespaceIsNotReady(t *testing.T) {
	for _, status := range []capsule.Status{capsule.StatusNamespaceNotReady, capsule.StatusInvalidField} {
		virtual(t, func(t *testing.T) {
			tg := newTarget(t)
			c := connect(t, tg, pipeOptions(t))
			n := disk(t, c)
			const refusals = 20 // more than the host repeats a command
			tg.refuses(capsule.CNSNamespace, status, refusals)
			tg.lose()
			event(t, c, EventReconnected)
			_, err := n.WriteAt(pattern(4096, 1), 0)
			require.ErrorIs(t, err, capsule.StatusError{Status: status})
			time.Sleep(time.Minute)
			_, err = n.WriteAt(pattern(4096, 1), 0)
			if status.DNR() {
				require.ErrorIs(t, err, capsule.StatusError{Status: status})
				require.Equal(t, 2, tg.asked(capsule.CNSNamespace), "to ask again is in vain")
				return
			}
			require.NoError(t, err)
			require.Equal(t, 1+refusals+1, tg.asked(capsule.CNSNamespace))
		})
	}
}

func TestHOST_19_NamespaceComesBack(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		c := connect(t, tg, pipeOptions(t))
		n, v := disk(t, c), tg.namespaces[1]
		for _, now := range []*volume{nil, v} {
			tg.lose()
			tg.replace(1, now)
			event(t, c, EventReconnected)
		}
		require.NoError(t, n.Err())
		require.Same(t, n, disk(t, c))
	})
}

// TestHOST_16_LooksThatWait: a look at the namespaces ends with its ctx, even while another look waits for the target.
func TestHOST_16_LooksThatWait(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		c := connect(t, tg, pipeOptions(t))
		var h held
		tg.script(func(c *call) bool {
			return c.Opcode == capsule.OpIdentify && capsule.ParseIdentify(&c.SQE).CNS == capsule.CNSNamespace && h.hold(c)
		})
		first := make(chan error, 1)
		go func() {
			_, err := c.Namespaces(context.Background())
			first <- err
		}()
		synctest.Wait()
		held := h.calls()
		require.Len(t, held, 1)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := c.Namespaces(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		tg.script(nil)
		held[0].execute()
		require.NoError(t, <-first)
	})
}
