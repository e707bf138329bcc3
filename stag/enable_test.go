package stag

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/raceorder"
)

// fastRegion allocates an STag for at most n octets.
func (p *testPeer) fastRegion(n int, most Access) *FastRegion {
	p.t.Helper()
	b, err := p.table.Allocate(uint64(n), Options{Access: most, Scope: Scope{PD: 1}})
	require.NoError(p.t, err)
	return b
}

// window allocates a window of PD 1.
func (p *testPeer) window() *Window {
	p.t.Helper()
	w, err := p.table.AllocateWindow(1)
	require.NoError(p.t, err)
	return w
}

// tryEnable prepares and enables.
func (p *testPeer) tryEnable(b *FastRegion, mem []byte, a Access, base uint64) (*Region, error) {
	p.t.Helper()
	r, err := b.Prepare(mem, a, base, nil)
	require.NoError(p.t, err)
	return r, p.table.Enable(p.scope, r)
}

func (p *testPeer) enable(b *FastRegion, mem []byte, a Access, base uint64) *Region {
	p.t.Helper()
	r, err := p.tryEnable(b, mem, a, base)
	require.NoError(p.t, err)
	return r
}

// tryBind prepares a binding and binds it.
func (p *testPeer) tryBind(w *Window, on *Region, off uint64, n int, a Access, base uint64) (*Region, error) {
	p.t.Helper()
	r, err := w.Prepare(n, a, base, nil)
	require.NoError(p.t, err)
	return r, p.table.Bind(p.scope, &p.windows, r, on, off)
}

func (p *testPeer) bind(w *Window, on *Region, off uint64, n int, a Access, base uint64) *Region {
	p.t.Helper()
	r, err := p.tryBind(w, on, off, n, a, base)
	require.NoError(p.t, err)
	return r
}

const lendable = LocalWrite | MWBind

func TestVERBS_5_25_WhatIsAllocatedIsInvalid(t *testing.T) {
	p := newPeer(t)
	for _, r := range []*Region{p.fastRegion(8, everyRight).Live(), p.window().Live()} {
		require.NotZero(t, r.STag().Index(), "the index is there from the beginning")
		require.False(t, r.Valid())
		require.Zero(t, r.Len())
		p.wantRefused("nothing can be done with it", r, InvalidSTag)
	}
}

func TestVERBS_13_NewKeyWorksAndTheOldOneDoesNot(t *testing.T) {
	p := newPeer(t)
	b := p.fastRegion(16, everyRight)
	first, second := make([]byte, 8), make([]byte, 16)
	one := p.enable(b, first, everyRight, 100)
	p.wantAllowed("the registration is in force", one)
	require.Same(t, one, b.Live())
	require.Equal(t, None, p.table.InvalidateSTag(p.scope, one.STag(), false))

	clear(first)
	two := p.enable(b, second, LocalWrite|RemoteWrite, 7)
	require.Equal(t, one.STag().Index(), two.STag().Index(), "the index stays")
	require.NotEqual(t, one.STag().Key(), two.STag().Key(), "the key does not")
	require.Equal(t, Bounds, p.try(two.STag(), RemoteWrite, 6, 1), "the base is that of the second")
	require.Equal(t, None, p.try(two.STag(), RemoteWrite, 7, 16), "and so is the length")
	require.Equal(t, AccessDenied, p.try(two.STag(), RemoteRead, 7, 1), "and so are the rights")
	p.wantRefused("the old name is of no use", one, InvalidSTag)
	require.Equal(t, InvalidSTag, p.table.InvalidateSTag(p.scope, one.STag(), false))
	require.ErrorIs(t, PlaceAt([]Span{{Region: one, Len: 8}}, 0, numbered(8)), ErrInvalid, "nor is what was posted with it")
	require.Equal(t, make([]byte, 8), first)
	require.Equal(t, numbered(16), second)
	require.True(t, two.Valid())
}

func TestVERBS_12_14_RegistrationIsRefused(t *testing.T) {
	p := newPeer(t)
	mem := make([]byte, 16)
	for expectation, c := range map[string]struct {
		scope  Scope
		mem    []byte
		access Access
		base   uint64
		err    error
	}{
		"as it should be":             {p.scope, mem, LocalWrite | RemoteWrite, 0, nil},
		"with less":                   {p.scope, mem[:1], 0, 0, nil},
		"one octet too long":          {p.scope, append(mem, 0), 0, 0, errTooLong},
		"empty":                       {p.scope, nil, 0, 0, errEmpty},
		"a right that is not allowed": {p.scope, mem, RemoteRead, 0, errRights},
		"rights that contradict":      {p.scope, mem, RemoteWrite, 0, errRights},
		"an unknown right":            {p.scope, mem, 1 << 20, 0, errRights},
		"another PD":                  {Scope{PD: 2, Stream: 7}, mem, 0, 0, errOtherScope},
		"the highest base":            {p.scope, mem, 0, ^uint64(0) - 16, nil},
		"a base that wraps":           {p.scope, mem, 0, ^uint64(0) - 15, errWrap},
	} {
		b := p.fastRegion(16, LocalWrite|RemoteWrite)
		r, err := b.Prepare(c.mem, c.access, c.base, nil)
		require.NoError(t, err)
		err = p.table.Enable(c.scope, r)
		require.ErrorIs(t, err, c.err, expectation)
		require.Equal(t, err == nil, r.Valid(), expectation)
		if err != nil {
			require.NotSame(t, r, b.Live(), "%s: nothing has changed", expectation)
			p.wantRefused(expectation, b.Live(), InvalidSTag)
			p.wantRefused(expectation, r, InvalidSTag)
		}
	}

	b := p.fastRegion(16, everyRight)
	first := p.enable(b, mem, everyRight, 0)
	_, err := p.tryEnable(b, mem, everyRight, 0)
	require.ErrorIs(t, err, errNotInvalid, "the STag is VALID")
	p.wantAllowed("and stays what it was", first)

	plain := p.register(8, everyRight, 0)
	p.invalidate(plain)
	require.ErrorIs(t, p.table.Enable(p.scope, plain), errNotPrepared, "what Register has made is not enabled again")
	bound, err := p.window().Prepare(8, RemoteRead, 0, nil)
	require.NoError(t, err)
	require.ErrorIs(t, p.table.Enable(p.scope, bound), errNotPrepared, "an MW is not registered")
	other := newPeer(t)
	r, err := other.fastRegion(8, 0).Prepare(mem[:8], 0, 0, nil)
	require.NoError(t, err)
	require.ErrorIs(t, p.table.Enable(p.scope, r), errNotPrepared, "nor is the STag of another table")
}

func TestAllocateRefusesWhatCannotBe(t *testing.T) {
	table := NewTable()
	_, err := table.Allocate(0, Options{})
	require.ErrorIs(t, err, errEmpty)
	_, err = table.Allocate(1, Options{Access: RemoteWrite})
	require.ErrorIs(t, err, errRights)
	table.limit = 0
	_, err = table.Allocate(1, Options{})
	require.ErrorIs(t, err, ErrExhausted)
	_, err = table.AllocateWindow(1)
	require.ErrorIs(t, err, ErrExhausted)
	require.Zero(t, table.Len())
}

func TestPrepareNeedsRandomness(t *testing.T) {
	p := newPeer(t)
	p.table = scripted(0x00000100, 0x00000200)
	b, w := p.fastRegion(8, 0), p.window()
	_, err := b.Prepare(make([]byte, 8), 0, 0, nil)
	require.ErrorContains(t, err, "randomness")
	_, err = w.Prepare(8, RemoteRead, 0, nil)
	require.ErrorContains(t, err, "randomness")
	_, err = b.PrepareBuffer(nil, 0, 0, 0, nil)
	require.ErrorContains(t, err, "no buffer")
}

// Each key comes from the older half, and all keys of that half are equally likely.
func TestVERBS_1_4_KeysOfEnables(t *testing.T) {
	var k keys
	k.start(0x7f)
	const draws, distance = 4000, 128
	last := map[uint8]int{0x7f: 0}
	for i := 1; i <= draws; i++ {
		key := k.draw(uint8(i * 7919))
		if at, used := last[key]; used {
			require.Greater(t, i-at, distance, "a key is not used again soon")
		}
		last[key] = i
	}
	require.Len(t, last, 256, "every key is used")

	next := map[uint8]bool{}
	for random := range 256 {
		fork := k
		next[fork.draw(uint8(random))] = true
	}
	require.Len(t, next, distance, "the next key is one of many")
}

// TestVERBS_1_4_NextKey: keys that are chosen ahead are as rare as others.
func TestVERBS_1_4_NextKey(t *testing.T) {
	p := newPeer(t)
	b := p.fastRegion(8, everyRight)
	mem := make([]byte, 8)
	last := map[uint8]int{}
	for i := 1; i <= 1000; i++ {
		key, err := b.NextKey()
		require.NoError(t, err)
		if at, used := last[key]; used {
			require.Greater(t, i-at, 128, "a key is not used again soon")
		}
		last[key] = i
		r, err := b.Prepare(mem, everyRight, 0, &key)
		require.NoError(t, err)
		require.Equal(t, key, r.STag().Key())
	}
	_, err := (*FastRegion)(nil).NextKey()
	require.ErrorIs(t, err, errNotFast)
}

func TestVERBS_16_InvalidateOfAnInvalidSTag(t *testing.T) {
	p := newPeer(t)
	b, w := p.fastRegion(8, everyRight), p.window()
	for range 2 {
		require.Equal(t, None, p.table.InvalidateSTag(p.scope, b.Live().STag(), false), "it succeeds")
		require.Equal(t, None, p.table.InvalidateSTag(p.scope, w.Live().STag(), false))
		require.NoError(t, b.Invalidate(context.Background()))
		require.NoError(t, w.Invalidate(context.Background()))
	}
}

func TestRevokedPreparationsAreNeverEnabled(t *testing.T) {
	p := newPeer(t)
	b, w := p.fastRegion(8, everyRight), p.window()
	mem := make([]byte, 8)
	on := p.register(8, lendable, 0)
	early, err := b.Prepare(mem, everyRight, 0, nil)
	require.NoError(t, err)
	earlyToo, err := w.Prepare(8, RemoteRead, 0, nil)
	require.NoError(t, err)
	require.NoError(t, b.Invalidate(context.Background()))
	require.NoError(t, w.Invalidate(context.Background()))
	require.EqualError(t, p.table.Enable(p.scope, early), "stag: the STag was invalidated or closed before the work request was executed",
		"what was queued when Invalidate was called fails")
	require.ErrorIs(t, p.table.Bind(p.scope, &p.windows, earlyToo, on, 0), errRevoked)

	late := p.enable(b, mem, everyRight, 0)
	p.wantAllowed("what comes after that does not", late)
	queued, err := b.Prepare(mem, everyRight, 0, nil)
	require.NoError(t, err)
	require.NoError(t, b.Close(context.Background()))
	require.NoError(t, b.Close(context.Background()), "closing again is no error")
	require.NoError(t, w.Close(context.Background()))
	p.wantRefused("Close ends it", late, InvalidSTag)
	require.ErrorIs(t, p.table.Enable(p.scope, queued), errRevoked)
	_, err = b.Prepare(mem, everyRight, 0, nil)
	require.ErrorIs(t, err, ErrInvalid, "and nothing can be prepared any more")
	require.NoError(t, b.Invalidate(context.Background()))
	_, err = b.Prepare(mem, everyRight, 0, nil)
	require.ErrorIs(t, err, ErrInvalid)
	require.Equal(t, 1, p.table.Len(), "all is given back but the region")
}

// TestVERBS_21_24_CloseOfABlank: neither the state nor the key matter, and nothing is
// placed afterwards.
func TestVERBS_21_24_CloseOfABlank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		b := p.fastRegion(8, everyRight)
		mem := make([]byte, 8)
		r := p.enable(b, mem, everyRight, 0)
		require.True(t, r.Pin(), "a placement is under way")
		r.Hold() // and a work request refers to the octets
		result := later(func() error { return b.Close(context.Background()) })
		_, done := result()
		require.False(t, done)
		require.Equal(t, InvalidSTag, p.try(r.STag(), RemoteWrite, 0, 1), "no other can begin")
		r.Unpin()
		_, done = result()
		require.False(t, done)
		r.Release()
		err, done := result()
		require.True(t, done)
		require.NoError(t, err)
		require.ErrorIs(t, PlaceAt([]Span{{Region: r, Len: 8}}, 0, numbered(8)), ErrInvalid)
		require.Equal(t, make([]byte, 8), mem)
	})
}

// TestVERBS_21_NothingIsRegisteredDuringAClose: while Close waits, a registration prepared before may replace the live
// one, and is closed with it. None does so when Close has ended.
func TestVERBS_21_NothingIsRegisteredDuringAClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		b, mem := p.fastRegion(8, everyRight), make([]byte, 8)
		live := p.enable(b, mem, everyRight, 0)
		early, err := b.Prepare(mem, everyRight, 0, nil)
		require.NoError(t, err)
		last, err := b.Prepare(mem, everyRight, 0, nil)
		require.NoError(t, err)
		live.Hold() // by an RDMA Read
		closed := later(func() error { return b.Close(context.Background()) })
		_, done := closed()
		require.False(t, done)
		require.ErrorIs(t, p.table.Enable(p.scope, early), errNotInvalid)
		require.Equal(t, None, p.table.InvalidateSTag(p.scope, live.STag(), false))
		require.NoError(t, p.table.Enable(p.scope, early))
		require.Equal(t, InvalidSTag, p.try(early.STag(), RemoteWrite, 0, 1), "it is CLOSING")
		_, err = b.Prepare(mem, everyRight, 0, nil)
		require.ErrorIs(t, err, ErrInvalid)
		live.Release()
		err, done = closed()
		require.True(t, done)
		require.NoError(t, err)
		require.ErrorIs(t, p.table.Enable(p.scope, last), errRevoked)
		p.wantRefused("nothing is left", early, InvalidSTag)
		p.wantRefused("nothing is left", last, InvalidSTag)
		require.Zero(t, p.table.Len())
	})
}

// TestNoWindowIsBoundDuringItsClose is the same for a window, whose Close waits for placements.
func TestNoWindowIsBoundDuringItsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		on, w := p.register(8, lendable, 0), p.window()
		live := p.bind(w, on, 0, 8, RemoteWrite, 0)
		early, err := w.Prepare(8, RemoteWrite, 0, nil)
		require.NoError(t, err)
		require.True(t, live.Pin())
		closed := later(func() error { return w.Close(context.Background()) })
		_, done := closed()
		require.False(t, done)
		require.ErrorIs(t, p.table.Bind(p.scope, &p.windows, early, on, 0), errRevoked)
		_, err = w.Prepare(8, RemoteWrite, 0, nil)
		require.ErrorIs(t, err, ErrInvalid)
		live.Unpin()
		err, done = closed()
		require.True(t, done)
		require.NoError(t, err)
		p.wantRefused("nothing is left", early, InvalidSTag)
		require.Zero(t, p.windows.Len())
		p.close(on)
	})
}

// TestVERBS_21_PeersLoseAccessBeforeCloseWaits: Close waits for the work requests that are to enable or invalidate the
// STag. From the beginning peers have no access to the live region or to what those requests enable.
func TestVERBS_21_PeersLoseAccessBeforeCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		b, w, on := p.fastRegion(8, everyRight), p.window(), p.register(8, lendable, 0)
		live, bound := p.enable(b, make([]byte, 8), everyRight, 0), p.bind(w, on, 0, 8, RemoteWrite, 0)
		next, err := b.Prepare(make([]byte, 8), everyRight, 0, nil)
		require.NoError(t, err)
		nextBound, err := w.Prepare(8, RemoteWrite, 0, nil)
		require.NoError(t, err)
		next.Pending().Hold()
		nextBound.Pending().Hold()
		next.Hold() // an RDMA Write is posted behind the registration

		ctx, cancel := context.WithCancel(context.Background())
		first := later(func() error { return b.Close(ctx) })
		firstBound := later(func() error { return w.Close(ctx) })
		_, done := first()
		require.False(t, done, "the registration is still to be performed")
		_, done = firstBound()
		require.False(t, done, "and so is the bind")
		require.Equal(t, InvalidSTag, p.try(live.STag(), RemoteWrite, 0, 1), "peers have lost access")
		require.Equal(t, InvalidSTag, p.try(bound.STag(), RemoteWrite, 0, 1), "through the window, too")
		_, err = b.Prepare(make([]byte, 8), everyRight, 0, nil)
		require.ErrorIs(t, err, ErrInvalid, "nothing else can be prepared")
		cancel()
		err, _ = first()
		require.ErrorIs(t, err, context.Canceled)
		err, _ = firstBound()
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, InvalidSTag, p.try(live.STag(), RemoteWrite, 0, 1), "which a Close that fails does not give back")

		require.ErrorIs(t, p.table.Enable(p.scope, next), errNotInvalid, "what is being closed is there")
		require.Equal(t, None, p.table.InvalidateSTag(p.scope, live.STag(), false))
		require.NoError(t, p.table.Enable(p.scope, next), "its turn comes")
		require.True(t, next.Usable(), "for the Write behind it")
		require.Equal(t, InvalidSTag, p.try(next.STag(), RemoteWrite, 0, 1), "peers have no access to it")
		require.Equal(t, None, p.table.InvalidateSTag(p.scope, bound.STag(), false))
		require.NoError(t, p.table.Bind(p.scope, &p.windows, nextBound, on, 0))
		require.Equal(t, InvalidSTag, p.try(nextBound.STag(), RemoteWrite, 0, 1))
		next.Pending().Release()
		nextBound.Pending().Release()

		second := later(func() error { return b.Close(context.Background()) })
		_, done = second()
		require.False(t, done, "the Write is still to be performed")
		next.Release()
		err, done = second()
		require.True(t, done)
		require.NoError(t, err)
		require.NoError(t, w.Close(context.Background()))
		require.Zero(t, p.windows.Len())
		p.close(on)
		require.Zero(t, p.table.Len(), "nothing is left")
	})
}

// TestVERBS_23_WhatCannotBeClosedCanBeEnabledAgain: windows keep it from being closed, and then nothing has
// changed.
func TestVERBS_23_WhatCannotBeClosedCanBeEnabledAgain(t *testing.T) {
	p := newPeer(t)
	b, w := p.fastRegion(8, lendable), p.window()
	mem := make([]byte, 8)
	r := p.enable(b, mem, lendable, 0)
	p.bind(w, r, 0, 8, RemoteRead, 0)
	require.ErrorIs(t, b.Close(context.Background()), ErrBound)
	require.NoError(t, w.Invalidate(context.Background()))
	require.Equal(t, None, p.table.InvalidateSTag(p.scope, r.STag(), false))
	p.enable(b, mem, lendable, 0)
	require.NoError(t, w.Close(context.Background()))
	require.NoError(t, b.Close(context.Background()))
	require.Zero(t, p.table.Len())
}

// TestVERBS_23_WindowThatIsBoundWhileCloseWaits for a registration: Close fails, and nothing has changed.
func TestVERBS_23_WindowThatIsBoundWhileCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		b, w, mem := p.fastRegion(8, lendable), p.window(), make([]byte, 8)
		r := p.enable(b, mem, lendable, 0)
		r.Pending().Hold()
		closed := later(func() error { return b.Close(context.Background()) })
		_, done := closed()
		require.False(t, done)
		p.bind(w, r, 0, 8, RemoteRead, 0)
		r.Pending().Release()
		err, done := closed()
		require.True(t, done)
		require.ErrorIs(t, err, ErrBound)
		require.True(t, r.Valid())
		_, err = b.Prepare(mem, lendable, 0, nil)
		require.NoError(t, err)
		require.NoError(t, w.Close(context.Background()))
		require.NoError(t, b.Close(context.Background()))
		require.Zero(t, p.table.Len())
	})
}

func TestEnablesAllocateLittle(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	p := newPeer(t)
	b, w, mem := p.fastRegion(8, everyRight), p.window(), make([]byte, 8)
	on := p.register(64, lendable, 0)
	p.bind(w, on, 0, 8, RemoteRead, 0)
	require.NoError(t, w.Invalidate(context.Background()))
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() {
		r, _ := b.Prepare(mem, everyRight, 0, nil)
		if p.table.Enable(p.scope, r) != nil || p.table.InvalidateSTag(p.scope, r.STag(), false) != None {
			panic("not enabled")
		}
	}), "a registration is one Region")
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() {
		r, _ := w.Prepare(8, RemoteRead, 0, nil)
		if p.table.Bind(p.scope, &p.windows, r, on, 8) != nil || p.table.InvalidateSTag(p.scope, r.STag(), true) != None {
			panic("not bound")
		}
	}), "and so is a binding")
}

// TestVERBS_23_TwoClosesOfARegistrationThatABindOvertakes: what is registered after the first has failed stays.
func TestVERBS_23_TwoClosesOfARegistrationThatABindOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		b, w, mem := p.fastRegion(8, lendable), p.window(), make([]byte, 8)
		r := p.enable(b, mem, lendable, 0)
		r.Pending().Hold()
		slow := &pausedContext{Context: context.Background(), resume: make(chan struct{})}
		second := later(func() error { return b.Close(slow) })
		first := later(func() error { return b.Close(context.Background()) })
		_, done := first()
		require.False(t, done)
		p.bind(w, r, 0, 8, RemoteRead, 0)
		r.Pending().Release()
		err, _ := first()
		require.ErrorIs(t, err, ErrBound)
		require.NoError(t, w.Close(context.Background()))
		require.Equal(t, None, p.table.InvalidateSTag(p.scope, r.STag(), false))
		next, err := b.Prepare(mem, lendable, 0, nil)
		require.NoError(t, err)
		next.Pending().Hold()
		close(slow.resume)
		err, done = second()
		require.True(t, done, "it does not wait for what was posted since")
		require.ErrorIs(t, err, ErrBound)
		next.Pending().Release()
		require.NoError(t, p.table.Enable(p.scope, next))
		require.NoError(t, b.Close(context.Background()))
		require.Zero(t, p.table.Len())
	})
}

// TestVERBS_23_CloseThatIsOvertakenByAnother that has failed, and by one that has begun since, waits for work posted in between.
func TestVERBS_23_CloseThatIsOvertakenByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		b, w, mem := p.fastRegion(8, lendable), p.window(), make([]byte, 8)
		r := p.enable(b, mem, lendable, 0)
		r.Hold()
		slow := &pausedContext{Context: context.Background(), resume: make(chan struct{})}
		second := later(func() error { return b.Close(slow) })
		first := later(func() error { return b.Close(context.Background()) })
		_, done := first()
		require.False(t, done)
		p.bind(w, r, 0, 8, RemoteRead, 0)
		r.Release()
		err, _ := first()
		require.ErrorIs(t, err, ErrBound)
		require.NoError(t, w.Close(context.Background()))
		require.Equal(t, None, p.table.InvalidateSTag(p.scope, r.STag(), false))
		next, err := b.Prepare(mem, lendable, 0, nil)
		require.NoError(t, err)
		next.Pending().Hold()
		third := later(func() error { return b.Close(context.Background()) })
		_, done = third()
		require.False(t, done)
		close(slow.resume)
		_, done = second()
		require.False(t, done, "the registration is still to come")
		require.NoError(t, p.table.Enable(p.scope, next))
		next.Pending().Release()
		for _, closed := range []func() (error, bool){second, third} {
			err, done = closed()
			require.True(t, done)
			require.NoError(t, err)
		}
		require.Zero(t, p.table.Len())
	})
}

// TestVERBS_23_RegistrationThatIsPostedAsABindStopsAClose: it was prepared before the Close, and is posted only when
// that has failed.
func TestVERBS_23_RegistrationThatIsPostedAsABindStopsAClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		b, w := p.fastRegion(8, lendable), p.window()
		r := p.enable(b, make([]byte, 8), lendable, 0)
		r.Hold() // by the Bind
		next, err := b.Prepare(make([]byte, 8), lendable, 0, nil)
		require.NoError(t, err)
		closed := later(func() error { return b.Close(context.Background()) })
		_, done := closed()
		require.False(t, done)
		p.bind(w, r, 0, 8, RemoteRead, 0)
		r.Release()
		err, done = closed()
		require.True(t, done)
		require.ErrorIs(t, err, ErrBound)
		require.NoError(t, w.Close(context.Background()))
		require.NoError(t, p.table.Invalidate(context.Background(), r))
		require.NoError(t, p.table.Enable(p.scope, next), "the Close has changed nothing")
		require.NoError(t, b.Close(context.Background()))
		require.Error(t, p.table.Enable(p.scope, next))
	})
}
