package host

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

func TestIdentify(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		c := connect(t, tg, pipeOptions(t))
		id, err := c.Identify(context.Background())
		require.NoError(t, err)
		require.Equal(t, tg.id.SN, id.SN)
		id.SN = "the caller's"
		id, err = c.Identify(context.Background())
		require.NoError(t, err)
		require.Equal(t, tg.id.SN, id.SN)
		require.NoError(t, c.Close())
		_, err = c.Identify(context.Background())
		require.ErrorIs(t, err, ErrClosed)
	})
}

// TestReadLog: a log page is read without its event being cleared.
func TestReadLog(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		c := connect(t, tg, pipeOptions(t))
		tg.mu.Lock()
		tg.log = pattern(4096, 7)
		tg.mu.Unlock()
		p := make([]byte, 1028)
		require.NoError(t, c.ReadLog(context.Background(), capsule.LogDiscovery, p))
		require.Equal(t, pattern(4096, 7)[:1028], p)
		logs := tg.commands(capsule.OpGetLogPage)
		m := capsule.ParseGetLogPage(&logs[len(logs)-1])
		require.True(t, m.RAE)
		for _, n := range []int{0, 3, adminTransfer + 4} {
			require.ErrorContains(t, c.ReadLog(context.Background(), capsule.LogSMART, make([]byte, n)), "multiple of 4")
		}
		tg.script(func(c *call) bool {
			if c.Opcode == capsule.OpGetLogPage {
				c.answer(0, capsule.StatusInvalidLogPage)
			}
			return c.Opcode == capsule.OpGetLogPage
		})
		require.ErrorIs(t, c.ReadLog(context.Background(), capsule.LogSMART, p), capsule.StatusError{Status: capsule.StatusInvalidLogPage})
		require.NoError(t, c.Close())
		require.ErrorIs(t, c.ReadLog(context.Background(), capsule.LogSMART, p), ErrClosed)
	})
}

// refuses makes the target answer the next Identify commands with that CNS by a status, so many times.
func (tg *target) refuses(cns uint8, status capsule.Status, times int) {
	tg.script(func(c *call) bool {
		if c.q.qid != 0 || c.Opcode != capsule.OpIdentify || capsule.ParseIdentify(&c.SQE).CNS != cns {
			return false
		}
		if times--; times < 0 {
			return false
		}
		c.answer(0, status)
		return true
	})
}

// asked returns how many Identify commands with a CNS have come.
func (tg *target) asked(cns uint8) (n int) {
	for _, sqe := range tg.commands(capsule.OpIdentify) {
		if capsule.ParseIdentify(&sqe).CNS == cns {
			n++
		}
	}
	return n
}

const always = 1 << 30

// TestHOST_20_RetriesOfAdminCommands: a transient status does not end the use of a namespace. Admin commands are sent
// again like I/O commands.
func TestHOST_20_RetriesOfAdminCommands(t *testing.T) {
	for _, x := range []struct {
		status  capsule.Status
		times   int
		retries int
		asked   int
		ok      bool
	}{
		{capsule.StatusBusy, 1, 0, 2, true},
		{capsule.StatusNamespaceNotReady, 5, 0, 6, true},
		{capsule.StatusInternalError, 6, 0, 6, false},
		{capsule.StatusBusy, 1, -1, 1, false},
		{capsule.StatusInternalError.WithDNR(), 1, 0, 1, false},
		{capsule.StatusInvalidField.WithoutDNR(), 1, 0, 1, false},
	} {
		for _, cns := range []uint8{capsule.CNSNamespace, capsule.CNSNamespaceList} {
			virtual(t, func(t *testing.T) {
				tg, o := newTarget(t), pipeOptions(t)
				o.Retries = x.retries
				c := connect(t, tg, o)
				n := disk(t, c)
				before := tg.asked(cns)
				tg.refuses(cns, x.status, x.times)
				_, err := c.Namespaces(context.Background())
				require.Equal(t, x.asked, tg.asked(cns)-before)
				if x.ok {
					require.NoError(t, err)
					require.NoError(t, n.Err())
					return
				}
				require.ErrorIs(t, err, capsule.StatusError{Status: x.status})
			})
		}
	}
}

// TestAdminCommandEndsWithContext: the end of the context ends the wait before a command is sent again.
func TestAdminCommandEndsWithContext(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		c := connect(t, tg, pipeOptions(t))
		tg.refuses(capsule.CNSNamespaceList, capsule.StatusBusy, always)
		ctx, cancel := context.WithTimeout(context.Background(), retryDelay/2)
		defer cancel()
		_, err := c.Namespaces(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
