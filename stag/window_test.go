package stag

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestVERBS_26_29_BindChecks(t *testing.T) {
	const n = 64
	p := newPeer(t)
	on := p.register(n, lendable|RemoteRead, 1<<40)
	frozen := p.register(n, MWBind, 0) // LocalRead only
	closed := p.register(n, lendable|Remote, 0)
	own := p.registerFor(p.scope, n, lendable, 0)
	dead := p.register(n, lendable, 0)
	p.invalidate(dead)
	aWindow := p.bind(p.window(), on, 0, n, RemoteRead, 0)
	for expectation, c := range map[string]struct {
		on     *Region
		off    uint64
		n      int
		access Access
		base   uint64
		err    error
	}{
		"all of the region":                      {on, 0, n, Remote, 0, nil},
		"its last octet":                         {on, n - 1, 1, RemoteRead, 0, nil},
		"a right that the region does not grant": {on, 0, n, RemoteWrite, 0, nil},
		"and another":                            {on, 0, n, RemoteAtomic, 0, nil},
		"reading what is only read":              {frozen, 0, n, RemoteRead, 0, nil},
		"a region of this stream":                {own, 0, n, RemoteRead, 0, nil},
		"the highest base":                       {on, 0, n, RemoteRead, ^uint64(0) - n, nil},
		"one octet too long":                     {on, 0, n + 1, RemoteRead, 0, ErrBounds},
		"one octet too late":                     {on, 1, n, RemoteRead, 0, ErrBounds},
		"after the region":                       {on, n + 1, 1, RemoteRead, 0, ErrBounds},
		"far away":                               {on, ^uint64(0), 2, RemoteRead, 0, ErrBounds},
		"nothing":                                {on, 0, 0, RemoteRead, 0, errEmpty},
		"less than nothing":                      {on, 0, -1, RemoteRead, 0, errEmpty},
		"a base that wraps":                      {on, 0, n, RemoteRead, ^uint64(0) - n + 1, errWrap},
		"without a right":                        {on, 0, n, 0, 0, errRights},
		"with a right that is not a peer's":      {on, 0, n, RemoteRead | LocalWrite, 0, errRights},
		"with the right to bind":                 {on, 0, n, RemoteRead | MWBind, 0, errRights},
		"with an unknown right":                  {on, 0, n, RemoteRead | 1<<20, 0, errRights},
		"writing what is only read":              {frozen, 0, n, RemoteWrite, 0, errRights},
		"atomics on what is only read":           {frozen, 0, n, RemoteRead | RemoteAtomic, 0, errRights},
		"a region without MWBind":                {p.register(n, everyRight, 0), 0, n, RemoteRead, 0, errRights},
		"a region of another PD":                 {p.registerFor(Scope{PD: 2}, n, lendable, 0), 0, n, RemoteRead, 0, errOtherScope},
		"a region of another stream":             {p.registerFor(Scope{PD: 1, Stream: 8}, n, lendable, 0), 0, n, RemoteRead, 0, errOtherScope},
		"an INVALID region":                      {dead, 0, n, RemoteRead, 0, ErrInvalid},
		"an STag without octets":                 {p.fastRegion(n, lendable).Live(), 0, n, RemoteRead, 0, errRights},
		"a window":                               {aWindow, 0, n, RemoteRead, 0, errNotPrepared},
	} {
		w := p.window()
		r, err := p.tryBind(w, c.on, c.off, c.n, c.access, c.base)
		require.ErrorIs(t, err, c.err, expectation)
		require.Equal(t, err == nil, r.Valid(), expectation)
		if err != nil {
			require.NotSame(t, r, w.Live(), "%s: nothing has changed", expectation)
			p.wantRefused(expectation, w.Live(), InvalidSTag)
			p.wantRefused(expectation, r, InvalidSTag)
			continue
		}
		require.Equal(t, None, p.try(r.STag(), c.access, c.base, c.n), expectation)
		require.NoError(t, w.Close(context.Background()))
	}
	p.close(closed)
	_, err := p.tryBind(p.window(), closed, 0, 1, RemoteRead, 0)
	require.ErrorIs(t, err, ErrInvalid, "a closed region")

	w := p.window()
	first := p.bind(w, on, 0, 8, RemoteRead, 0)
	_, err = p.tryBind(w, on, 8, 8, RemoteRead, 0)
	require.ErrorIs(t, err, errNotInvalid, "a window that is bound already")
	require.Equal(t, None, p.try(first.STag(), RemoteRead, 0, 8), "stays bound")

	foreign, err := p.table.AllocateWindow(2)
	require.NoError(t, err)
	_, err = p.tryBind(foreign, on, 0, 8, RemoteRead, 0)
	require.ErrorIs(t, err, errOtherScope, "a window of another PD")
	require.ErrorIs(t, p.table.Bind(p.scope, &p.windows, p.fastRegion(8, 0).Live(), on, 0), errNotPrepared, "what is no window")
	require.ErrorIs(t, p.table.Bind(p.scope, &p.windows, on, on, 0), errNotPrepared)
	elsewhere, err := newPeer(t).window().Prepare(8, RemoteRead, 0, nil)
	require.NoError(t, err)
	require.ErrorIs(t, p.table.Bind(p.scope, &p.windows, elsewhere, on, 0), errNotPrepared, "a window of another table")
}

func TestVERBS_9_28_WindowDecidesAndNotTheRegion(t *testing.T) {
	const base = 1000
	p := newPeer(t)
	mem := make([]byte, 32)
	on, err := p.table.Register(mem, Options{Access: lendable | RemoteRead, Scope: Scope{PD: 1}})
	require.NoError(t, err)
	w := p.bind(p.window(), on, 8, 16, RemoteWrite, base)
	for to := uint64(base - 10); to < base+16+10; to++ {
		for n := 1; n < 20; n++ {
			expect := Bounds
			if to >= base && to+uint64(n) <= base+16 {
				expect = None
			}
			require.Equal(t, expect, p.try(w.STag(), RemoteWrite, to, n), "%d octets at %d", n, to)
		}
	}
	require.Equal(t, AccessDenied, p.try(w.STag(), RemoteRead, base, 1), "the region has RemoteRead, the window has not")
	require.Equal(t, AccessDenied, p.try(on.STag(), RemoteWrite, 0, 1), "and the region has no RemoteWrite")
	require.Equal(t, make([]byte, 8), mem[:8], "no octet outside the window was touched")
	require.Equal(t, make([]byte, 8), mem[24:])
	require.NotEqual(t, make([]byte, 16), mem[8:24])
}

func TestVERBS_27_WindowServesTheStreamThatBoundIt(t *testing.T) {
	p := newPeer(t)
	on := p.register(8, lendable, 0)
	w := p.bind(p.window(), on, 0, 8, Remote, 0)
	for _, scope := range []Scope{{PD: 1, Stream: 8}, {PD: 2, Stream: 7}} {
		other := p.as(scope)
		other.wantRefused("another stream has no use of it", w, NotAssociated)
		for _, remote := range []bool{false, true} {
			require.Equal(t, NotInvalidatable, p.table.InvalidateSTag(scope, w.STag(), remote), "nor can it invalidate it")
		}
	}
	require.True(t, w.Valid())
	require.Equal(t, None, p.try(w.STag(), RemoteWrite, 0, 8), "its own stream does")
}

func TestVERBS_30_InvalidatedWindowBelongsToItsPD(t *testing.T) {
	p := newPeer(t)
	other := p.as(Scope{PD: 1, Stream: 8})
	on := p.register(8, lendable|RemoteRead, 0)
	window := p.window()
	for _, revoke := range []func(w *Region) error{
		func(w *Region) error { return asError(p.table.InvalidateSTag(p.scope, w.STag(), false)) },
		func(w *Region) error { return asError(p.table.InvalidateSTag(p.scope, w.STag(), true)) },
		func(*Region) error { return window.Invalidate(context.Background()) },
		func(*Region) error { p.windows.Invalidate(); return nil },
	} {
		first := p.bind(window, on, 0, 4, RemoteWrite, 0)
		require.Equal(t, 1, p.windows.Len())
		require.NoError(t, revoke(first))
		require.Zero(t, p.windows.Len(), "the stream has lost it")
		p.wantRefused("its name is of no use", first, InvalidSTag)
		p.wantAllowed("the region stays VALID", on)
		require.Equal(t, None, p.table.InvalidateSTag(other.scope, first.STag(), false), "any stream of the PD may invalidate it, again")
		require.Equal(t, NotInvalidatable, p.table.InvalidateSTag(Scope{PD: 2, Stream: 7}, first.STag(), false), "but none of another PD")

		second := other.bind(window, on, 4, 4, RemoteWrite, 0)
		require.NotEqual(t, first.STag(), second.STag(), "another stream binds it under a new key")
		require.Equal(t, first.STag().Index(), second.STag().Index())
		require.Equal(t, None, other.try(second.STag(), RemoteWrite, 0, 4))
		require.Equal(t, NotAssociated, p.try(second.STag(), RemoteWrite, 0, 4), "and has it for itself")
		require.NoError(t, window.Invalidate(context.Background()))
	}
}

func asError(v Violation) error {
	if v == None {
		return nil
	}
	return errors.New(v.String())
}

// TestVERBS_17_23_RegionWithWindowsCannotGo: first the windows, then the region.
func TestVERBS_17_23_RegionWithWindowsCannotGo(t *testing.T) {
	p := newPeer(t)
	b := p.fastRegion(8, lendable|RemoteRead)
	mem := make([]byte, 8)
	ctx := context.Background()
	for _, on := range []*Region{p.registerFor(p.scope, 8, lendable|RemoteRead, 0), p.enable(b, mem, lendable|RemoteRead, 0)} {
		windows := [2]*Window{p.window(), p.window()}
		for _, w := range windows {
			p.bind(w, on, 0, 8, RemoteRead, 0)
		}
		for _, w := range windows {
			require.Equal(t, NotInvalidatable, p.table.InvalidateSTag(p.scope, on.STag(), false))
			require.Equal(t, NotInvalidatable, p.table.InvalidateSTag(p.scope, on.STag(), true))
			require.ErrorIs(t, p.table.Invalidate(ctx, on), ErrBound)
			require.ErrorIs(t, p.table.Close(ctx, on), ErrBound)
			require.Equal(t, None, p.try(on.STag(), RemoteRead, 0, 8), "nothing has changed")
			require.Equal(t, None, p.try(w.Live().STag(), RemoteRead, 0, 8))
			require.NoError(t, w.Close(ctx))
		}
		require.Equal(t, None, p.table.InvalidateSTag(p.scope, on.STag(), false))
	}
	on := p.enable(b, mem, lendable, 0)
	w := p.window()
	p.bind(w, on, 0, 8, RemoteRead, 0)
	queued, err := b.Prepare(mem, lendable, 0, nil)
	require.NoError(t, err)
	require.ErrorIs(t, b.Invalidate(ctx), ErrBound)
	require.ErrorIs(t, b.Close(ctx), ErrBound)
	require.NoError(t, w.Close(ctx))
	require.Equal(t, None, p.table.InvalidateSTag(p.scope, on.STag(), false))
	require.NoError(t, p.table.Enable(p.scope, queued), "what was refused has revoked nothing")
	require.NoError(t, b.Close(ctx))
}

// TestVERBS_23_CloseThatABindOvertakes: a Bind that was posted before the Close is one of the
// requests that it waits for. Then the region has a window and is as it was.
func TestVERBS_23_CloseThatABindOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		on := p.register(8, lendable|RemoteRead, 0)
		on.Hold() // by the Bind
		closed := later(func() error { return p.table.Close(context.Background(), on) })
		_, done := closed()
		require.False(t, done)
		require.False(t, on.Valid(), "it is CLOSING")
		w := p.window()
		p.bind(w, on, 0, 8, RemoteRead, 0)
		on.Release()
		err, done := closed()
		require.True(t, done)
		require.ErrorIs(t, err, ErrBound)
		require.True(t, on.Valid())
		require.Equal(t, None, p.try(on.STag(), RemoteRead, 0, 8))
		require.NoError(t, w.Close(context.Background()))
		p.close(on)
	})
}

// TestVERBS_21_NothingIsPlacedThroughARevokedWindow, and the region is not free before
// the placement in progress has ended.
func TestVERBS_21_NothingIsPlacedThroughARevokedWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		on := p.register(8, lendable, 0)
		window := p.window()
		w := p.bind(window, on, 0, 8, RemoteWrite, 0)
		require.True(t, w.Pin(), "a placement is under way")

		expired, cancel := context.WithCancel(context.Background())
		cancel()
		require.ErrorIs(t, window.Invalidate(expired), context.Canceled)
		p.wantRefused("the STag is dead at once", w, InvalidSTag)
		require.ErrorIs(t, p.table.Close(context.Background(), on), ErrBound, "the region is lent until the placement has ended")
		require.Equal(t, 1, p.windows.Len())
		again := p.bind(window, on, 4, 4, RemoteWrite, 0)
		require.Equal(t, 2, p.windows.Len(), "though the window may be bound anew meanwhile")

		invalidated := later(func() error { return p.table.Invalidate(context.Background(), w) })
		_, done := invalidated()
		require.False(t, done)
		w.Unpin()
		err, done := invalidated()
		require.True(t, done)
		require.NoError(t, err)
		require.NoError(t, p.table.Invalidate(context.Background(), w), "invalidating again is no error, and changes no count")
		require.Equal(t, 1, p.windows.Len())
		require.True(t, again.Valid())
		require.NoError(t, window.Close(context.Background()))
		p.close(on)
	})
}

// TestVERBS_21_WindowsAreRevokedUnderFire: streams write through windows that are
// bound and revoked all the time; the race detector watches the octets.
func TestVERBS_21_WindowsAreRevokedUnderFire(t *testing.T) {
	p := newPeer(t)
	mem := make([]byte, 4096)
	on, err := p.table.Register(mem, Options{Access: lendable, Scope: Scope{PD: 1}})
	require.NoError(t, err)
	window := p.window()
	for i := range 300 {
		w := p.bind(window, on, 64, 2048, RemoteWrite, 0)
		var running sync.WaitGroup
		started := make(chan struct{}, 1)
		running.Go(func() { p.flood(w.STag(), 0, 2048, started) })
		<-started
		require.Equal(t, None, p.table.InvalidateSTag(p.scope, w.STag(), i%2 == 0))
		clear(mem)
		running.Wait()
		require.Equal(t, make([]byte, 4096), mem, "no octet was placed after the window was revoked")
	}
	p.close(on)
}

// TestWindowOnABuffer: placements, Reads, Flushes and notices use the offsets of the
// window's place.
func TestWindowOnABuffer(t *testing.T) {
	p := newPeer(t)
	file := &testFile{data: bytes.Repeat([]byte{'.'}, 32)}
	var flushed, dirty, failed []int64
	var watched watching
	on, err := p.table.RegisterBuffer(file, Options{
		Access: lendable, BaseTO: 77, Scope: Scope{PD: 1},
		Flusher: flushFunc(func(off, n int64) { flushed = append(flushed, off, n) }),
		Dirty:   func(off, n int64) { dirty = append(dirty, off, n) },
		Failed:  func(off, n int64, _ error) { failed = append(failed, off, n) },
		Watch:   &watched,
	})
	require.NoError(t, err)
	w := p.bind(p.window(), on, 10, 8, Remote, 500)
	r, off, v := p.table.Pin(p.scope, w.STag(), RemoteWrite, 502, 4)
	require.Equal(t, None, v)
	require.NoError(t, r.Place(off, []byte("abcd")))
	require.Equal(t, "............abcd................", string(file.data))
	got := make([]byte, 8)
	require.NoError(t, r.ReadInto(got, 0))
	require.Equal(t, "..abcd..", string(got))
	require.ErrorIs(t, r.Place(5, []byte("abcd")), ErrBounds, "not past the window")
	require.NoError(t, r.Flusher().Flush(context.Background(), 2, 4))
	require.Equal(t, []int64{12, 4}, dirty)
	file.err = io.ErrShortWrite
	require.NoError(t, r.PlaceWrite(2, []byte("abcd")))
	r.Unpin()
	require.Equal(t, []int64{12, 4}, failed)
	require.Equal(t, []int64{12, 4}, flushed)
	require.Equal(t, []string{"1 12 4 false", "2 12 4 true"}, watched.told)
}

type flushFunc func(off, n int64)

func (f flushFunc) Flush(_ context.Context, off, n int64) error { f(off, n); return nil }

// A region that peers may write to through a window is copied before it is sent.
func TestPeersMayWrite(t *testing.T) {
	p := newPeer(t)
	for a, want := range map[Access]bool{
		0: false, LocalWrite: false, RemoteRead: false, MWBind: false, MWBind | RemoteRead: false,
		LocalWrite | RemoteWrite: true, LocalWrite | RemoteAtomic: true, LocalWrite | MWBind: true,
	} {
		require.Equal(t, want, p.register(1, a, 0).PeersMayWrite(), "%v", a)
	}
}

// TestWindowsAndRegionsComeAndGoAtOnce: streams bind and write, all goroutines invalidate, and
// the owner of the memory takes it back whenever it can. The race detector watches the octets,
// and in the end nothing is left.
func TestWindowsAndRegionsComeAndGoAtOnce(t *testing.T) {
	const streams, octets, rounds = 4, 256, 400
	p := newPeer(t)
	ctx := context.Background()
	var lent [streams]atomic.Pointer[Region] // the window that each has
	var region atomic.Pointer[Region]
	var taken atomic.Int32
	region.Store(p.register(octets, lendable, 0))
	var users, revokers sync.WaitGroup
	stop := make(chan struct{})
	for i := range streams {
		users.Go(func() {
			me := p.as(Scope{PD: 1, Stream: uint64(100 + i)})
			window := me.window()
			for n := 0; n < rounds || taken.Load() < 3 && n < 1000*rounds; n++ {
				r, err := window.Prepare(octets/streams, RemoteWrite, 0, nil)
				if err != nil {
					panic(err)
				}
				err = me.table.Bind(me.scope, &me.windows, r, region.Load(), uint64(i*octets/streams))
				if err == nil {
					lent[i].Store(r)
					if a, off, v := me.table.Pin(me.scope, r.STag(), RemoteWrite, 0, 8); v == None {
						_ = a.Place(off, numbered(8))
						a.Unpin()
					}
				}
				switch n % 4 {
				case 0:
					_ = window.Invalidate(ctx)
				case 1, 2:
					me.table.InvalidateSTag(me.scope, r.STag(), n%4 == 1)
				default:
					me.windows.Invalidate()
				}
			}
			if window.Close(ctx) != nil || me.windows.Len() != 0 {
				panic("a window is left")
			}
		})
	}
	revokers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for i := range lent {
				if r := lent[i].Load(); r != nil {
					_ = p.table.Invalidate(ctx, r)
				}
			}
		}
	})
	revokers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			old := region.Load()
			if p.table.Close(ctx, old) == nil {
				clear(old.mem) // no stream has access any more
				taken.Add(1)
				region.Store(p.register(octets, lendable, 0))
			}
		}
	})
	users.Wait()
	close(stop)
	revokers.Wait()
	require.GreaterOrEqual(t, taken.Load(), int32(3), "the owner had its turns")
	p.close(region.Load())
	require.Zero(t, p.table.Len())
}

// TestInvalidatingAWindowAgainGivesNothingBackTwice: the region counts its bound windows.
func TestInvalidatingAWindowAgainGivesNothingBackTwice(t *testing.T) {
	p := newPeer(t)
	on := p.register(16, lendable, 0)
	w, other := p.window(), p.window()
	first := p.bind(w, on, 0, 8, RemoteRead, 0)
	p.bind(other, on, 8, 8, RemoteRead, 0)
	for range 3 {
		require.NoError(t, w.Invalidate(context.Background()))
		require.NoError(t, p.table.Invalidate(context.Background(), first))
		require.ErrorIs(t, p.table.Invalidate(context.Background(), on), ErrBound, "the other is bound still")
	}
	require.Nil(t, first.mem, "what is invalid keeps no memory")
	require.Equal(t, 1, p.windows.Len())
	require.NoError(t, other.Invalidate(context.Background()))
	p.invalidate(on)
}

// TestEndOfAStreamWaitsForPlacementsThroughItsWindows: afterwards the octets belong to
// their owner alone.
func TestEndOfAStreamWaitsForPlacementsThroughItsWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		on := p.register(16, lendable, 0)
		w := p.bind(p.window(), on, 0, 8, RemoteWrite, 0)
		require.True(t, w.Pin(), "a placement is under way")
		result := later(func() error { p.windows.Invalidate(); return nil })
		_, done := result()
		require.False(t, done)
		require.False(t, w.Valid(), "no other can begin")
		w.Unpin()
		_, done = result()
		require.True(t, done)
		require.Zero(t, p.windows.Len())
	})
}

// A failingFlusher has an error for one range.
type failingFlusher struct{ off, n int64 }

func (f failingFlusher) Flush(_ context.Context, off, n int64) error {
	if off == f.off && n == f.n {
		return errors.New("media failed")
	}
	return nil
}

// TestWindowTellsWhatTheMediaHaveFailed, in the offsets of the region under it.
func TestWindowTellsWhatTheMediaHaveFailed(t *testing.T) {
	p := newPeer(t)
	on, err := p.table.Register(make([]byte, 16), Options{Access: lendable, Scope: Scope{PD: 1}, Flusher: failingFlusher{8 + 2, 3}})
	require.NoError(t, err)
	w := p.bind(p.window(), on, 8, 8, RemoteWrite, 0)
	require.ErrorContains(t, w.Flusher().Flush(context.Background(), 2, 3), "media failed")
	require.NoError(t, w.Flusher().Flush(context.Background(), 3, 3))
}

// TestRegistrationOfABlankIsAsDurableAsTheBlank: it has the blank's Flusher, and
// reports to the blank's Dirty what was written.
func TestRegistrationOfABlankIsAsDurableAsTheBlank(t *testing.T) {
	p := newPeer(t)
	var dirty []int64
	b, err := p.table.Allocate(8, Options{
		Access: everyRight, Scope: Scope{PD: 1}, Flusher: failingFlusher{},
		Dirty: func(off, n int64) { dirty = append(dirty, off, n) },
	})
	require.NoError(t, err)
	r := p.enable(b, make([]byte, 8), everyRight, 0)
	require.Equal(t, failingFlusher{}, r.Flusher())
	require.Equal(t, None, p.try(r.STag(), RemoteWrite, 3, 2))
	require.Equal(t, []int64{3, 2}, dirty)
}

// TestRegistrationOfABlankTellsWhatItsBufferHasFailed, as a region of RegisterBuffer does.
func TestRegistrationOfABlankTellsWhatItsBufferHasFailed(t *testing.T) {
	p := newPeer(t)
	file := &testFile{data: make([]byte, 8), err: errors.New("no space")}
	var failed []any
	b, err := p.table.Allocate(8, Options{
		Access: lendable | RemoteWrite, Scope: Scope{PD: 1},
		Failed: func(off, n int64, err error) { failed = append(failed, off, n, errors.Is(err, file.err)) },
	})
	require.NoError(t, err)
	r, err := b.PrepareBuffer(file, file.Size(), lendable|RemoteWrite, 0, nil)
	require.NoError(t, err)
	require.NoError(t, p.table.Enable(p.scope, r))
	require.NoError(t, r.PlaceWrite(2, numbered(4)))
	require.Equal(t, []any{int64(2), int64(4), true}, failed)
	w := p.bind(p.window(), r, 1, 7, RemoteWrite, 0)
	require.NoError(t, w.PlaceWrite(2, numbered(4)))
	require.Equal(t, []any{int64(3), int64(4), true}, failed[3:], "through a window, too")
}

// TestCloseOfABlankThatIsUsedTellsSo: its octets are not the caller's yet.
func TestCloseOfABlankThatIsUsedTellsSo(t *testing.T) {
	p := newPeer(t)
	b := p.fastRegion(8, everyRight)
	r := p.enable(b, make([]byte, 8), everyRight, 0)
	r.Hold()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, b.Close(over), context.Canceled)
	r.Release()
	require.NoError(t, b.Close(over))
}

// TestVERBS_23_TwoClosesThatABindOvertakes: the region is as it was, and neither Close waits for the requests that
// are posted from then on.
func TestVERBS_23_TwoClosesThatABindOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		on, w := p.register(8, lendable|RemoteRead, 0), p.window()
		on.Hold() // by the Bind
		slow := &pausedContext{Context: context.Background(), resume: make(chan struct{})}
		second := later(func() error { return p.table.Close(slow, on) })
		first := later(func() error { return p.table.Close(context.Background(), on) })
		_, done := first()
		require.False(t, done)
		p.bind(w, on, 0, 8, RemoteRead, 0)
		on.Release()
		err, done := first()
		require.True(t, done)
		require.ErrorIs(t, err, ErrBound)
		require.NoError(t, w.Close(context.Background()))
		on.Hold() // by a request that is posted now
		close(slow.resume)
		err, done = second()
		require.True(t, done)
		require.ErrorIs(t, err, ErrBound)
		p.wantAllowed("nothing has changed", on)
		on.Release()
		p.close(on)
	})
}

// TestVERBS_23_CloseThatIsTriedAgainAfterABind: the region is as it was before the first try.
func TestVERBS_23_CloseThatIsTriedAgainAfterABind(t *testing.T) {
	p := newPeer(t)
	w := p.window()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	on := p.register(8, lendable, 0)
	on.Hold() // by the bind
	require.ErrorIs(t, p.table.Close(over, on), context.Canceled)
	p.bind(w, on, 0, 8, RemoteRead, 0)
	require.ErrorIs(t, p.table.Close(over, on), context.Canceled, "that may still end, and the window with it")
	on.Release()
	require.ErrorIs(t, p.table.Close(over, on), ErrBound)
	require.True(t, on.Valid(), "nothing has changed")
	require.NoError(t, w.Close(t.Context()))

	b := p.fastRegion(8, lendable)
	r := p.enable(b, make([]byte, 8), lendable, 0)
	w = p.window()
	r.Pending().Hold()
	require.ErrorIs(t, b.Close(over), context.Canceled)
	p.bind(w, r, 0, 8, RemoteRead, 0)
	r.Pending().Release()
	require.ErrorIs(t, b.Close(over), ErrBound)
	require.True(t, r.Valid())
	_, err := b.Prepare(make([]byte, 8), lendable, 0, nil)
	require.NoError(t, err)
}

// A pausedContext makes its waiters pause until resume is closed.
type pausedContext struct {
	context.Context
	resume chan struct{}
}

func (c *pausedContext) Done() <-chan struct{} {
	<-c.resume
	return c.Context.Done()
}
