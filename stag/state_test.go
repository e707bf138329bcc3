package stag

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// later runs f in a goroutine and returns a function that returns its result, and
// whether there is one yet.
func later(f func() error) (result func() (error, bool)) {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return func() (error, bool) {
		synctest.Wait()
		select {
		case err := <-done:
			return err, true
		default:
			return nil, false
		}
	}
}

// TestVERBS_21_WhatTheTableHasIsValid: InvalidateSTag of another stream of the PD never finds a window, or a
// registration, that becomes VALID when it has returned.
func TestVERBS_21_WhatTheTableHasIsValid(t *testing.T) {
	p := newPeer(t)
	on, window, b := p.register(8, lendable, 0), p.window(), p.fastRegion(8, everyRight)
	w, err := window.Prepare(8, RemoteWrite, 0, nil)
	require.NoError(t, err)
	r, err := b.Prepare(make([]byte, 8), everyRight, 0, nil)
	require.NoError(t, err)
	for fresh, enable := range map[*Region]func() error{
		w: func() error { return p.table.Bind(p.scope, &p.windows, w, on, 0) },
		r: func() error { return p.table.Enable(p.scope, r) },
	} {
		enabled := make(chan error, 1)
		p.table.mu.Lock() // nothing gets into the table
		go func() { enabled <- enable() }()
		require.Eventually(t, fresh.Valid, 5*time.Second, time.Millisecond)
		require.Equal(t, InvalidSTag, p.table.InvalidateSTag(p.scope, fresh.STag(), false))
		p.table.mu.Unlock()
		require.NoError(t, <-enabled)
		require.Equal(t, None, p.table.InvalidateSTag(p.scope, fresh.STag(), false))
		require.False(t, fresh.Valid())
	}
	require.Zero(t, p.windows.Len())
	p.close(on)
}

func TestRDMAP_125_InvalidateWaitsForPinsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		r := p.register(8, everyRight, 0)
		r.Hold()
		require.True(t, r.Pin())
		require.True(t, r.Pin())
		result := later(func() error { return p.table.Invalidate(context.Background(), r) })
		_, done := result()
		require.False(t, done, "two placements are in flight")
		require.False(t, r.Valid(), "the STag is dead at once")
		p.wantRefused("no access begins", r, InvalidSTag)
		r.Unpin()
		_, done = result()
		require.False(t, done, "one placement is in flight")
		r.Unpin()
		err, done := result()
		require.True(t, done, "a work request in flight is not waited for")
		require.NoError(t, err)
		r.Release()
	})
}

// TestEveryCloseHearsThatAWindowWasBound: a Close that finds a window puts the region into use again, so that
// another Close that waits for work requests must not wait for a region that nothing closes.
func TestEveryCloseHearsThatAWindowWasBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		on := p.register(8, lendable, 0)
		on.Hold()
		result := later(func() error { return p.table.Close(context.Background(), on) })
		_, done := result()
		require.False(t, done)
		require.True(t, on.lend(), "as the bind that is in flight does")
		_, err := on.endClose() // of a Close that has seen no work request
		require.ErrorIs(t, err, ErrBound)
		err, done = result()
		require.True(t, done)
		require.ErrorIs(t, err, ErrBound)
		require.True(t, on.Valid())
		on.Release()
	})
}

func TestInvalidateIsBoundByItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		r := p.register(8, everyRight, 0)
		require.True(t, r.Pin())
		ctx, cancel := context.WithCancel(context.Background())
		result := later(func() error { return p.table.Invalidate(ctx, r) })
		_, done := result()
		require.False(t, done)
		cancel()
		err, _ := result()
		require.ErrorIs(t, err, context.Canceled)
		p.wantRefused("the STag is dead all the same", r, InvalidSTag)
		r.Unpin()
		require.NoError(t, p.table.Invalidate(ctx, r), "with nothing to wait for a dead context is no matter")
		require.NoError(t, p.table.Invalidate(ctx, r), "invalidating again is no error")
		require.Equal(t, 1, p.table.Len(), "the region is still in the table")
	})
}

func TestCloseWaitsForHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		r := p.register(8, everyRight, 0)
		r.Hold()
		r.Hold()
		ctx, cancel := context.WithCancel(context.Background())
		first := later(func() error { return p.table.Close(ctx, r) })
		second := later(func() error { return p.table.Close(context.Background(), r) })
		_, done := first()
		require.False(t, done, "two work requests refer to the octets")
		require.False(t, r.Valid())
		cancel()
		err, _ := first()
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, p.table.Len(), "a Close that failed leaves the region in the table")
		r.Release()
		_, done = second()
		require.False(t, done, "one work request refers to the octets")
		r.Release()
		err, done = second()
		require.True(t, done)
		require.NoError(t, err)
		require.Zero(t, p.table.Len())
		require.NoError(t, p.table.Close(ctx, r), "closing again is no error")
		require.Zero(t, p.table.Len())
	})
}

// TestResponsesAreTakenWhileARegionIsBeingClosed: the Reads that were posted before keep a hold on it.
func TestResponsesAreTakenWhileARegionIsBeingClosed(t *testing.T) {
	p := newPeer(t)
	r := p.register(8, everyRight, 0)
	r.Hold()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.table.Close(ctx, r), context.Canceled)
	require.Equal(t, None, p.try(r.STag(), LocalWrite, 0, 8), "the response to a Read of this side")
	for _, want := range []Access{RemoteWrite, RemoteRead, RemoteAtomic} {
		require.Equal(t, InvalidSTag, p.try(r.STag(), want, 0, 8), "%v is of the peer", want)
	}
	r.Release()
	p.close(r)
	require.Equal(t, InvalidSTag, p.try(r.STag(), LocalWrite, 0, 8))
}

func TestFailedPinsLeaveNoTrace(t *testing.T) {
	p := newPeer(t)
	r := p.register(8, everyRight, 0)
	p.invalidate(r)
	for range 3 {
		require.False(t, r.Pin())
	}
	require.Equal(t, invalid, r.state.Load())
	p.close(r)
}

// A pin that comes between Invalidate's mark and its look at the count is undone,
// and the undoing wakes the waiter.
func TestLatePinIsUndone(t *testing.T) {
	p := newPeer(t)
	r := p.register(8, everyRight, 0)
	r.state.Add(onePin)
	r.kill()
	drained := r.whenZero(pins)
	require.NotNil(t, drained)
	r.drop(onePin, pins)
	<-drained
	require.Nil(t, r.whenZero(pins))
}

// TestVERBS_23_CloseWaitsForAWorkRequestThatComesLate: one whose poster has found the region VALID just before the Close, or
// that looks whether it still is.
func TestVERBS_23_CloseWaitsForAWorkRequestThatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		r := p.register(8, lendable, 0)
		require.True(t, r.beginClose())
		require.NoError(t, r.drain(t.Context(), holds))
		r.Hold()
		held, err := r.endClose()
		require.NoError(t, err, "no window is bound")
		require.True(t, held)
		require.True(t, r.Usable())
		closed := later(func() error { return p.table.endClose(context.Background(), r) })
		_, done := closed()
		require.False(t, done)
		r.Release()
		err, done = closed()
		require.True(t, done)
		require.NoError(t, err)
		require.Zero(t, p.table.Len())
	})
}
