package solicit

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const ki = 1 << 10

// A windowed is a Window with a clock. The test expects no errors from it.
type windowed struct {
	*Window
	t   *testing.T
	now time.Time
}

func newWindowed(t *testing.T, cfg Config) *windowed {
	require.NoError(t, cfg.Check())
	return &windowed{Window: New(cfg, epoch), t: t, now: epoch}
}

func (w *windowed) enqueue(c Class, n int64) uint64 {
	w.t.Helper()
	id, err := w.Enqueue(w.now, c, n)
	require.NoError(w.t, err)
	require.NotZero(w.t, id)
	return id
}

// grants returns the ids that are granted now.
func (w *windowed) grants() (ids []uint64) {
	for g, ok := w.Next(w.now); ok; g, ok = w.Next(w.now) {
		ids = append(ids, g.ID)
	}
	return ids
}

func (w *windowed) granted(n int64) {
	w.t.Helper()
	require.Equal(w.t, n, w.Stats().Granted)
	require.LessOrEqual(w.t, n, w.Stats().Limit)
}

func TestSOL_1_GrantedNeverExceedsTheLimit(t *testing.T) {
	w := newWindowed(t, Config{Fixed: 256 * ki})
	var ids []uint64
	for range 5 {
		ids = append(ids, w.enqueue(Bulk, 64*ki))
	}
	require.Equal(t, ids[:4], w.grants())
	w.granted(256 * ki)
	require.EqualValues(t, 256*ki, w.Stats().Limit)
	w.Release(w.now, ids[0], OK)
	w.granted(192 * ki)
	require.Equal(t, ids[4:], w.grants())
	require.EqualValues(t, 256*ki, w.Stats().MaxGranted)
}

// TestSOL_2_LimitShrinksWithTheGrants: existing grants stay, the limit follows as they return, and nothing new is
// granted meanwhile.
func TestSOL_2_LimitShrinksWithTheGrants(t *testing.T) {
	w := newWindowed(t, Config{Min: 64 * ki, Start: 256 * ki})
	var ids []uint64
	for range 4 {
		ids = append(ids, w.enqueue(Bulk, 64*ki))
	}
	require.Equal(t, ids, w.grants())
	w.sizing.target = 64 * ki
	last := w.enqueue(Bulk, 64*ki)
	for i, id := range ids {
		require.Empty(t, w.grants())
		w.granted(int64(4-i) * 64 * ki)
		require.Equal(t, int64(4-i)*64*ki, w.Stats().Limit)
		w.Release(w.now, id, Failed)
	}
	require.Equal(t, []uint64{last}, w.grants())
	require.EqualValues(t, 64*ki, w.Stats().Limit)
}

// TestSOL_2_LimitIsNoLessThanWhatWaits: an operation that is larger than the target gets its turn.
func TestSOL_2_LimitIsNoLessThanWhatWaits(t *testing.T) {
	w := newWindowed(t, Config{Min: 64 * ki, Max: 1024 * ki, Start: 64 * ki})
	small := w.enqueue(Bulk, 64*ki)
	require.Equal(t, []uint64{small}, w.grants())
	large := w.enqueue(Bulk, 1024*ki)
	larger := w.enqueue(Latency, 300*ki)
	middle := w.enqueue(Bulk, 500*ki)
	require.EqualValues(t, 1024*ki, w.Stats().Limit)
	require.Equal(t, []uint64{larger}, w.grants())
	require.True(t, w.Cancel(w.now, large))
	require.EqualValues(t, 500*ki, w.Stats().Limit)
	require.True(t, w.Cancel(w.now, middle))
	require.EqualValues(t, 364*ki, w.Stats().Limit, "it follows what is granted")
	w.Release(w.now, small, OK)
	w.Release(w.now, larger, OK)
	require.EqualValues(t, 64*ki, w.Stats().Limit)
	large = w.enqueue(Bulk, 1024*ki)
	require.Equal(t, []uint64{large}, w.grants())
	w.granted(1024 * ki)
}

// TestSOL_2_AnOperationOutgrowsAWindowThatShrinks while it waits, and gets its turn.
func TestSOL_2_AnOperationOutgrowsAWindowThatShrinks(t *testing.T) {
	w := newWindowed(t, Config{Min: 64 * ki, Start: 256 * ki})
	running := w.enqueue(Bulk, 256*ki)
	require.Equal(t, []uint64{running}, w.grants())
	waits := w.enqueue(Bulk, 200*ki)
	require.Empty(t, w.grants())
	w.sizing.target = 64 * ki
	w.Release(w.now, running, Failed)
	require.Equal(t, []uint64{waits}, w.grants())
}

func TestSOL_3_GrantedWholeAndOnce(t *testing.T) {
	w := newWindowed(t, Config{Fixed: 100 * ki})
	a, b := w.enqueue(Bulk, 60*ki), w.enqueue(Bulk, 40*ki+1)
	g, ok := w.Next(w.now)
	require.True(t, ok)
	require.Equal(t, Grant{ID: a, Class: Bulk, N: 60 * ki}, g)
	_, ok = w.Next(w.now)
	require.False(t, ok, "one octet is wanting")
	w.granted(60 * ki)
	w.Release(w.now, a, OK)
	require.Equal(t, []uint64{b}, w.grants())
	require.Empty(t, w.grants())
	require.Equal(t, [2]uint64{Bulk: 2}, w.Stats().Grants)
	require.Equal(t, [2]uint64{Bulk: 100*ki + 1}, w.Stats().Octets)
}

// TestSOL_3_TinyOnesAreNotFree: each takes at least 64 octets.
func TestSOL_3_TinyOnesAreNotFree(t *testing.T) {
	w := newWindowed(t, Config{Fixed: 150})
	for n := range int64(3) {
		w.enqueue(Latency, n)
	}
	require.Len(t, w.grants(), 2)
	w.granted(128)
}

func TestSOL_8_WaitingTooLongExpires(t *testing.T) {
	w := newWindowed(t, Config{Fixed: 64 * ki, Dispatch: [2]time.Duration{DispatchLatency, DispatchBulk}})
	_, ok := w.Deadline()
	require.False(t, ok)
	running := w.enqueue(Bulk, 64*ki)
	require.Equal(t, []uint64{running}, w.grants())
	_, ok = w.Deadline()
	require.False(t, ok, "what is granted does not expire")

	bulk := w.enqueue(Bulk, 64*ki)
	w.now = w.now.Add(190 * time.Millisecond)
	first, second := w.enqueue(Latency, 64*ki), w.enqueue(Latency, 64*ki)
	at, ok := w.Deadline()
	require.True(t, ok)
	require.Equal(t, epoch.Add(DispatchBulk+1), at)
	require.Empty(t, w.Expire(at.Add(-1), nil), "it has not waited for longer")
	require.Equal(t, []uint64{bulk}, w.Expire(at, nil))
	at, ok = w.Deadline()
	require.True(t, ok)
	require.Equal(t, w.now.Add(DispatchLatency+1), at)

	// Next does not grant an overdue operation, and Expire reports it once.
	w.now = at
	w.Release(w.now, running, OK)
	require.Empty(t, w.grants())
	require.Equal(t, 2, w.Stats().Queued)
	due, ok := w.Deadline()
	require.True(t, ok)
	require.Equal(t, at, due)
	require.Equal(t, []uint64{7, first, second}, w.Expire(w.now, []uint64{7}))
	require.Empty(t, w.Expire(w.now, nil))
	require.EqualValues(t, 3, w.Stats().Expired)
	require.Zero(t, w.Stats().Queued)
	w.granted(0)
	require.False(t, w.Cancel(w.now, first))
}

// TestSOL_8_CancelOfOverdueOperations ends them, and what their class had left of its turn ended with their wait.
func TestSOL_8_CancelOfOverdueOperations(t *testing.T) {
	w := newWindowed(t, Config{Fixed: 256 * ki, Dispatch: [2]time.Duration{Bulk: DispatchBulk}})
	running := w.enqueue(Latency, 64*ki)
	require.Equal(t, []uint64{running}, w.grants())
	ids := []uint64{w.enqueue(Bulk, 256*ki), w.enqueue(Bulk, 64)}
	require.Empty(t, w.grants())
	require.NotZero(t, w.arbiter.deficit[Bulk])
	w.now = w.now.Add(DispatchBulk + 1)
	require.Empty(t, w.grants())
	require.Zero(t, w.arbiter.deficit[Bulk])
	for _, id := range ids {
		require.True(t, w.Cancel(w.now, id))
	}
	require.Zero(t, w.Stats().Queued)
	require.Empty(t, w.Expire(w.now, nil))
}

func TestSOL_8_NoTimeoutByDefault(t *testing.T) {
	w := newWindowed(t, Config{})
	id := w.enqueue(Bulk, 1)
	_, ok := w.Deadline()
	require.False(t, ok)
	w.now = w.now.Add(1000 * time.Hour)
	require.Empty(t, w.Expire(w.now, nil))
	require.Equal(t, []uint64{id}, w.grants())
}

// TestSOL_8_TimeDoesNotGoBackwards: an earlier time counts as the latest one.
func TestSOL_8_TimeDoesNotGoBackwards(t *testing.T) {
	w := newWindowed(t, Config{Fixed: 64 * ki, Dispatch: [2]time.Duration{DispatchLatency, 0}})
	w.now = epoch.Add(time.Hour)
	require.Empty(t, w.grants())
	w.now = epoch.Add(-time.Hour)
	id := w.enqueue(Latency, 1)
	at, ok := w.Deadline()
	require.True(t, ok)
	require.Equal(t, epoch.Add(time.Hour+DispatchLatency+1), at)
	require.Equal(t, []uint64{id}, w.grants())
	w.Release(w.now, id, OK)
	w.granted(0)
}

func TestSOL_9_NackRefundsAtOnce(t *testing.T) {
	w := newWindowed(t, Config{Fixed: 64 * ki})
	a, b := w.enqueue(Bulk, 64*ki), w.enqueue(Bulk, 64*ki)
	require.Equal(t, []uint64{a}, w.grants())
	w.Release(w.now, a, Nack)
	w.granted(0)
	require.Equal(t, []uint64{b}, w.grants())
	require.EqualValues(t, 1, w.Stats().Nacked)
}

func TestSOL_10_ReleaseOfWhatIsNotGranted(t *testing.T) {
	w := newWindowed(t, Config{Fixed: 64 * ki})
	a, b := w.enqueue(Bulk, 64*ki), w.enqueue(Bulk, 64*ki)
	require.Equal(t, []uint64{a}, w.grants())
	for i, id := range []uint64{0, 1, b, a + 1<<32, 1 << 32, math.MaxUint64} {
		w.Release(w.now, id, OK)
		w.granted(64 * ki)
		require.EqualValues(t, i+1, w.Stats().Unidentified)
	}
	w.Release(w.now, a, OK)
	require.Equal(t, []uint64{b}, w.grants())
	w.Release(w.now, a, Nack)
	w.Hold(w.now, a)
	w.granted(64 * ki)
	require.EqualValues(t, 8, w.Stats().Unidentified)
	require.Zero(t, w.Stats().Nacked)
	require.False(t, w.Cancel(w.now, b), "it is granted")

	// The entry of a is used again, but its id is not.
	c := w.enqueue(Latency, 64)
	require.Equal(t, uint32(a), uint32(c))
	require.NotEqual(t, a, c)
	require.False(t, w.Cancel(w.now, a))
	require.True(t, w.Cancel(w.now, c))
	require.False(t, w.Cancel(w.now, c))
	require.EqualValues(t, 1, w.Stats().Cancelled)
}

// TestSOL_10_IdsAreNeverUsedAgain: an entry whose ids are used up stays unused.
func TestSOL_10_IdsAreNeverUsedAgain(t *testing.T) {
	w := newWindowed(t, Config{})
	first := w.enqueue(Bulk, 1)
	require.True(t, w.Cancel(w.now, first))
	w.table.entries[uint32(first)].gen = math.MaxUint32 - 1
	last := w.enqueue(Bulk, 1)
	require.Equal(t, uint32(first), uint32(last))
	require.True(t, w.Cancel(w.now, last))
	next := w.enqueue(Bulk, 1)
	require.NotEqual(t, uint32(first), uint32(next))
	require.False(t, w.Cancel(w.now, first))
	require.False(t, w.Cancel(w.now, last))
	require.Equal(t, []uint64{next}, w.grants())
}

func TestSOL_11_HoldKeepsTheOctets(t *testing.T) {
	w := newWindowed(t, Config{Fixed: 64 * ki})
	a, b := w.enqueue(Bulk, 64*ki), w.enqueue(Bulk, 64*ki)
	require.Equal(t, []uint64{a}, w.grants())
	w.Hold(w.now, b)
	require.EqualValues(t, 1, w.Stats().Unidentified, "it is not granted")
	w.Hold(w.now, a)
	w.Hold(w.now, a)
	require.EqualValues(t, 2, w.Stats().Unidentified, "it is held already")
	require.EqualValues(t, 64*ki, w.Stats().Held)
	require.Empty(t, w.grants())
	w.granted(64 * ki)
	w.Release(w.now, a, Timeout)
	require.Equal(t, []uint64{b}, w.grants())
	require.Zero(t, w.Stats().Held)
	require.EqualValues(t, 1, w.Stats().TimedOut, "it timed out once")
	w.Release(w.now, b, Timeout)
	require.EqualValues(t, 2, w.Stats().TimedOut)
}

func TestSOL_12_WhatEnqueueRefuses(t *testing.T) {
	w := newWindowed(t, Config{Max: 1024 * ki, MaxQueue: 2, Dispatch: [2]time.Duration{0, time.Millisecond}})
	refuses := func(want error, c Class, n int64) {
		t.Helper()
		id, err := w.Enqueue(w.now, c, n)
		require.Equal(t, want, err)
		require.Zero(t, id)
	}
	require.EqualValues(t, 1024*ki, w.Max())
	refuses(ErrTooLarge, Bulk, 1024*ki+1)
	refuses(ErrInvalid, Bulk, -1)
	refuses(ErrInvalid, Bulk+1, 1)
	w.enqueue(Bulk, 1024*ki)
	b := w.enqueue(Bulk, 1)
	refuses(ErrQueueFull, Bulk, 1)
	w.enqueue(Latency, 1)
	require.True(t, w.Cancel(w.now, b))
	w.enqueue(Bulk, 1)
	w.now = w.now.Add(time.Second)
	w.grants()
	refuses(ErrQueueFull, Bulk, 1)
	require.Len(t, w.Expire(w.now, nil), 2)
	w.enqueue(Bulk, 1)
	require.EqualValues(t, 1, w.Stats().TooLarge)
	require.EqualValues(t, 2, w.Stats().QueueFull)
}
