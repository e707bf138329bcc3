package host

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// A chain consists of Transfers that each start again when they have ended, until so many are done.
type chain struct {
	n    *Namespace
	left atomic.Int64
	over chan error // the end of each Transfer that has not started again
}

func (c *chain) transfer(write bool, p []byte, off int64) *Transfer {
	return &Transfer{Write: write, P: p, Off: off, Done: func(t *Transfer) {
		err := t.Err
		if err == nil && c.left.Add(-1) >= 0 {
			if _, err = c.n.Start(t); err == nil {
				return // it is the queue's again
			}
		}
		c.over <- err
	}}
}

// TestHOST_25_Transfers: many are outstanding on all I/O queues, without a goroutine for each.
func TestHOST_25_Transfers(t *testing.T) {
	virtual(t, func(t *testing.T) {
		o := pipeOptions(t)
		o.Queues = 2
		n := disk(t, connect(t, newTarget(t), o))
		c := &chain{n: n, over: make(chan error, 16)}
		for _, size := range []int{4 << 10, 64 << 10} {
			for _, write := range []bool{true, false} {
				var all []*Transfer
				for i := range 8 {
					p := make([]byte, size)
					if write {
						p = pattern(size, byte(i))
					}
					all = append(all, c.transfer(write, p, int64(i*size)))
				}
				c.left.Store(200)
				started, err := n.Start(all...)
				require.NoError(t, err)
				require.Equal(t, 8, started)
				for range all {
					require.NoError(t, <-c.over)
				}
				if write {
					continue
				}
				for i, one := range all {
					require.Equal(t, pattern(size, byte(i)), one.P)
				}
			}
		}
	})
}

func TestHOST_25_TransfersThatAreRefused(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		n := disk(t, connect(t, tg, o))
		none := func(t *Transfer) { panic("a Transfer that was not started has ended") }
		p := make([]byte, 4096)
		for _, one := range []struct {
			t   Transfer
			err error
		}{
			{Transfer{P: p[:100]}, ErrUnaligned},
			{Transfer{P: p, Off: 1}, ErrUnaligned},
			{Transfer{P: p, Off: n.Size()}, ErrOutOfRange},
			{Transfer{P: nil}, ErrOutOfRange},
			{Transfer{P: make([]byte, 2<<20)}, ErrOutOfRange},
		} {
			one.t.Done = none
			started, err := n.Start(&one.t)
			require.ErrorIs(t, err, one.err)
			require.Zero(t, started)
		}
		_, err := n.Start(&Transfer{P: make([]byte, 2<<20), Done: none})
		require.ErrorContains(t, err, "a Transfer of 2097152 octets, which are not 1 to 1048576")
		errors := make(chan error, 1)
		tg.script(only(capsule.OpRead, func(c *call) bool { c.answer(0, capsule.StatusReadError); return true }))
		_, err = n.Start(&Transfer{P: p, Done: func(t *Transfer) { errors <- t.Err }})
		require.NoError(t, err)
		var status capsule.StatusError
		require.ErrorAs(t, <-errors, &status)
		require.Equal(t, capsule.StatusReadError, status.Status)
	})
}

// TestHOST_18_TransfersEndWithTheQueue: as many start as there is room for, and no more. All of them end with the
// connection.
func TestHOST_18_TransfersEndWithTheQueue(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		o.QueueSize, o.IOTimeout = 8, 3*time.Second
		n := disk(t, connect(t, tg, o))
		tg.script(only(capsule.OpRead, func(c *call) bool { return true })) // no answer
		errors := make(chan error, 20)
		var all []*Transfer
		for range 10 {
			all = append(all, &Transfer{P: make([]byte, 4096), Done: func(t *Transfer) {
				_, again := n.Start(t)
				if again == nil {
					t.Err = nil // it must not have started
				}
				errors <- t.Err
			}})
		}
		began := time.Now()
		started, err := n.Start(all...)
		require.ErrorIs(t, err, ErrQueueFull)
		require.Equal(t, 7, started)
		for range started {
			err := <-errors
			require.ErrorIs(t, err, ErrLost)
			require.ErrorIs(t, err, ErrTimeout)
			var lost *LostError
			require.ErrorAs(t, err, &lost)
			require.True(t, lost.Sent)
		}
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}

// TestHOST_18_20_RefusedByTheQP: a command that the QP refused was not sent, and only such a command was not. It is sent
// again if unsent commands may be.
func TestHOST_18_20_RefusedByTheQP(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		o.Queues = 1
		c := connect(t, tg, o)
		n := disk(t, c)
		refuses := func() { // commands with data in their capsules: their memory is gone
			a, err := c.current(context.Background())
			require.NoError(t, err)
			require.GreaterOrEqual(t, a.io[0].inside, 4096)
			require.NoError(t, a.io[0].capMR.Close())
		}
		refuses()
		_, err := n.Compare(context.Background(), make([]byte, 4096), 0)
		require.NoError(t, err, "on the next connection")
		require.Len(t, tg.commands(capsule.OpCompare), 1)

		tg.script(only(capsule.OpRead, func(*call) bool { return true })) // no answer
		refuses()
		errs := make(chan error, 3)
		done := func(t *Transfer) { errs <- t.Err }
		started, err := n.Start(
			&Transfer{P: make([]byte, 4096), Done: done},
			&Transfer{P: make([]byte, 4096), Write: true, Done: done},
			&Transfer{P: make([]byte, 4096), Done: done})
		require.NoError(t, err)
		require.Equal(t, 3, started)
		var sent []bool
		for range started {
			var lost *LostError
			require.ErrorAs(t, <-errs, &lost)
			sent = append(sent, lost.Sent)
		}
		require.Equal(t, []bool{true, false, false}, sent, "the Write was refused, and what comes after it")
	})
}
