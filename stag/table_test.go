package stag

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// scripted returns a table that draws these values, one after the other.
func scripted(draws ...uint32) *Table {
	var b []byte
	for _, d := range draws {
		b = binary.BigEndian.AppendUint32(b, d)
	}
	table := NewTable()
	table.random = bytes.NewReader(b)
	return table
}

func TestTableHoldsWhatWasRegistered(t *testing.T) {
	p := newPeer(t)
	rng := rand.New(rand.NewPCG(1, 2))
	var live, closed []*Region
	for range 4000 {
		if i := rng.IntN(3); i > 0 || len(live) == 0 {
			live = append(live, p.register(1, RemoteRead, 0))
			continue
		}
		i := rng.IntN(len(live))
		p.close(live[i])
		closed = append(closed, live[i])
		live[i] = live[len(live)-1]
		live = live[:len(live)-1]
	}
	require.Equal(t, len(live), p.table.Len())
	for _, r := range live {
		got, _, v := p.table.Pin(p.scope, r.STag(), RemoteRead, 0, 1)
		require.Equal(t, None, v)
		require.Same(t, r, got)
		r.Unpin()
	}
	for _, r := range closed {
		require.Equal(t, InvalidSTag, p.try(r.STag(), RemoteRead, 0, 1))
	}
}

func TestTableStaysSmallWithFewRegions(t *testing.T) {
	p := newPeer(t)
	for range 10_000 {
		p.close(p.register(1, 0, 0))
	}
	require.Zero(t, p.table.Len())
	require.Len(t, *p.table.slots.Load(), minSlots, "removed regions leave no trace")

	for range 1000 {
		p.register(1, 0, 0)
	}
	require.LessOrEqual(t, len(*p.table.slots.Load()), 4096)
}

// TestSlotsAreCountedRightly: half of them are never used, so that a search comes to an end.
func TestSlotsAreCountedRightly(t *testing.T) {
	p := newPeer(t)
	rng := rand.New(rand.NewPCG(3, 4))
	var live []*Region
	peak := 0
	for i := range 3000 {
		if grow := rng.IntN(100) < 55; grow || len(live) == 0 {
			live = append(live, p.register(1, 0, 0))
		} else {
			k := rng.IntN(len(live))
			p.close(live[k])
			live[k] = live[len(live)-1]
			live = live[:len(live)-1]
		}
		s := *p.table.slots.Load()
		used := 0
		for k := range s {
			if s[k].Load() != nil {
				used++
			}
		}
		require.Equal(t, used, p.table.used, "after %d changes", i)
		require.LessOrEqual(t, 2*used, len(s))
		peak = max(peak, len(live))
		require.LessOrEqual(t, len(s), max(minSlots, 8*(peak+1)), "and not many more than were needed")
	}
}

func TestQuarantineIsBounded(t *testing.T) {
	q := quarantine{limit: 100}
	for i := range uint32(1000) {
		q.add(i)
	}
	require.Len(t, q.ring, 100)
	require.Len(t, q.in, 100)
	for i := range uint32(1000) {
		require.Equal(t, i >= 900, q.has(i), "the last hundred are kept")
	}
}

func TestTableIsFull(t *testing.T) {
	p := newPeer(t)
	p.table.limit = 2
	first := p.register(1, 0, 0)
	p.register(1, 0, 0)
	_, err := p.table.Register(make([]byte, 1), Options{})
	require.ErrorIs(t, err, ErrExhausted)
	p.invalidate(first)
	_, err = p.table.Register(make([]byte, 1), Options{})
	require.ErrorIs(t, err, ErrExhausted, "an INVALID region still takes its place")
	p.close(first)
	p.register(1, 0, 0)
}

func TestDrawEndsWithABadSource(t *testing.T) {
	table := NewTable()
	table.random = bytes.NewReader(make([]byte, 4*maxDraws))
	_, err := table.Register(make([]byte, 1), Options{})
	require.ErrorIs(t, err, ErrExhausted, "a source of nothing but zeroes is given up")

	broken := errors.New("no entropy")
	table.random = iotest.ErrReader(broken)
	_, err = table.Register(make([]byte, 1), Options{})
	require.ErrorIs(t, err, broken)
	require.Zero(t, table.Len())
}

func TestRegisterRefusesNothing(t *testing.T) {
	table := NewTable()
	_, err := table.Register(nil, Options{})
	require.ErrorContains(t, err, "empty")
	_, err = table.RegisterBuffer(nil, Options{})
	require.ErrorContains(t, err, "no buffer")
	_, err = table.RegisterBuffer(&testFile{}, Options{})
	require.ErrorContains(t, err, "empty")
	_, err = table.RegisterBuffer(sized(-1), Options{})
	require.ErrorContains(t, err, "size -1")
	require.Zero(t, table.Len())
}

// sized is a Buffer of which only the size is used.
type sized int64

func (s sized) Size() int64                          { return int64(s) }
func (sized) ReadAt(p []byte, _ int64) (int, error)  { return len(p), nil }
func (sized) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

func TestRegionsMayBeVeryLarge(t *testing.T) {
	p := newPeer(t)
	const size, base = 1<<63 - 1, 1 << 62
	r, err := p.table.RegisterBuffer(sized(size), Options{Access: everyRight, BaseTO: base, Scope: Scope{PD: 1}})
	require.NoError(t, err)
	require.Equal(t, uint64(size), r.Len())
	require.Equal(t, None, p.try(r.STag(), RemoteWrite, base+size-4, 4))
	require.Equal(t, Bounds, p.try(r.STag(), RemoteWrite, base+size-4, 5))
	require.ErrorIs(t, r.Place(size-4, numbered(5)), ErrBounds)
}

func TestAccessWhileTheTableChanges(t *testing.T) {
	p := newPeer(t)
	steady := p.register(8, RemoteRead, 0)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				r, _, v := p.table.Pin(p.scope, steady.STag(), RemoteRead, 0, 8)
				if v != None || r != steady {
					panic("a region that was not invalidated was lost")
				}
				r.Unpin()
			}
		})
	}
	var kept []*Region
	for i := range 2000 {
		r := p.register(1, 0, 0)
		if i%2 == 0 {
			p.close(r)
		} else {
			kept = append(kept, r)
		}
	}
	close(stop)
	readers.Wait()
	for _, r := range kept {
		p.close(r)
	}
	require.Equal(t, 1, p.table.Len())
}

func TestCloseLeavesTheRegionsOfOthersAlone(t *testing.T) {
	p, other := newPeer(t), newPeer(t)
	r := p.register(1, 0, 0)
	require.NoError(t, other.table.Close(context.Background(), r))
	require.Equal(t, 1, p.table.Len())
	require.Zero(t, other.table.Len())
	require.False(t, other.table.freed.has(r.STag().Index()))
}
