package rma

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/solicit"
)

// endings takes n completions, by tag.
func (p *Portal) endings(t testing.TB, n int) map[uint64]Completion {
	t.Helper()
	all := map[uint64]Completion{}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for len(all) < n {
		some := make([]Completion, n)
		k, err := p.Wait(ctx, some)
		require.NoError(t, err)
		for _, c := range some[:k] {
			all[c.Tag] = c
		}
	}
	return all
}

// TestPostAll begins the commands before the first one that it cannot begin.
func TestPostAll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{})
		h, p := w.opens(), w.portal(3)
		w.mem.Update(func(b []byte) { copy(b, octets(1, 64)) })
		commands := func(n int) (all []Command) {
			for i := range n {
				all = append(all, Command{Op: Read, Handle: h, Off: uint64(i), Buf: make([]byte, 8), Tag: uint64(i)})
			}
			return all
		}

		cmds, slots := commands(4), make([]Slot, 4)
		n, err := p.PostAll(cmds, slots)
		require.ErrorIs(t, err, ErrNoSlot)
		require.Equal(t, 3, n)
		for tag, end := range p.endings(t, 3) {
			require.NoError(t, end.Err)
			require.Equal(t, slots[tag], end.Slot)
			require.Equal(t, octets(1+byte(tag), 8), cmds[tag].Buf)
		}

		cmds = commands(3)
		cmds[1].Class = solicit.Bulk + 1
		n, err = p.PostAll(cmds, nil)
		require.ErrorContains(t, err, "is no class")
		require.Equal(t, 1, n)
		require.NoError(t, p.ended(t).Err)

		_, err = p.PostAll(commands(3), make([]Slot, 2))
		require.EqualError(t, err, "rma: PostAll of 3 commands with room for 2 slots")

		n, err = p.PostAll(commands(3), nil)
		require.NoError(t, err)
		require.Equal(t, 3, n, "no slot is lost")
		p.endings(t, 3)
	})
}

// TestManyOperationsAtOnce: more than are posted together.
func TestManyOperationsAtOnce(t *testing.T) {
	for name, p := range suites() {
		t.Run(name, func(t *testing.T) {
			const n = 2 * outboxWRs
			p.client.MaxSlots, p.client.ScratchLimit = n, 64<<20
			p.server.Depth, p.server.ScratchLimit = n, 64<<20
			p.patient()
			w := start(t, p)
			h, portal := w.opens(), w.portal(n)
			w.mem.Update(func(b []byte) { copy(b, octets(1, n)) })
			cmds := make([]Command, n)
			for i := range cmds {
				cmds[i] = Command{Op: Read, Handle: h, Off: uint64(i), Buf: make([]byte, 1), Tag: uint64(i)}
			}
			_, err := portal.PostAll(cmds, nil)
			require.NoError(t, err)
			for tag, end := range portal.endings(t, n) {
				require.NoError(t, end.Err)
				require.Equal(t, octets(1+byte(tag), 1), cmds[tag].Buf)
			}
			for i := range cmds {
				cmds[i].Op, cmds[i].Buf = Write, octets(byte(7*i), 1)
			}
			_, err = portal.PostAll(cmds, nil)
			require.NoError(t, err)
			for _, end := range portal.endings(t, n) {
				require.NoError(t, end.Err)
			}
			w.mem.View(func(b []byte) {
				for i := range n {
					require.Equal(t, byte(7*i), b[i])
				}
			})
		})
	}
}

// TestAnswersDoNotWaitForABuffer that takes its time for a later request.
func TestAnswersDoNotWaitForABuffer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{})
		_, err := w.server.Register(2, NewMemory(octets(5, 8)), &RegionOptions{Key: testKey, Ops: MayRead})
		require.NoError(t, err)
		slow, p := w.opens(), w.portal(3)
		quick, err := w.client.Open(w.context(), 2, MayRead)
		require.NoError(t, err)
		stuck := w.stall()
		buf := make([]byte, 8)
		begun := time.Now()
		_, err = p.PostAll([]Command{
			{Op: Read, Handle: quick, Buf: buf, Tag: 1},
			{Op: Read, Handle: slow, Buf: make([]byte, 8), Tag: 2},
			{Op: Read, Handle: quick, Buf: make([]byte, 8), Tag: 3},
		}, nil)
		require.NoError(t, err)
		stuck.wait()
		end := p.ended(t)
		require.NoError(t, end.Err)
		require.EqualValues(t, 1, end.Tag)
		require.Equal(t, octets(5, 8), buf)
		require.LessOrEqual(t, time.Since(begun), 2*postWithin)
		stuck.release()
		for _, end := range p.endings(t, 2) {
			require.NoError(t, end.Err)
		}
	})
}
