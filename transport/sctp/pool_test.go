package sctp

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A fakeAssociation has so many pairs of streams.
type fakeAssociation struct {
	mu      sync.Mutex
	pairs   int
	retired bool
	ended   bool
}

func (a *fakeAssociation) Open() (Stream, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pairs <= 0 {
		return nil, false
	}
	a.pairs--
	return newFake(), true
}

func (a *fakeAssociation) Retire() { a.retired = true }
func (a *fakeAssociation) End()    { a.ended = true }

func (a *fakeAssociation) Err() error {
	if a.ended || a.pairs < 0 {
		return errEnded
	}
	return nil
}

var errEnded = errors.New("ended")

// poolTest runs a test with a pool whose associations have two pairs each, and take a
// second to be made.
func poolTest(t *testing.T, f func(t *testing.T, p *Pool[string, *fakeAssociation])) {
	synctest.Test(t, func(t *testing.T) {
		f(t, NewPool(func(ctx context.Context, to string) (*fakeAssociation, error) {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			if to == "no listener" {
				return nil, errors.New("refused")
			}
			return &fakeAssociation{pairs: map[string]int{"": 2, "another": 2, "that ends": -1}[to]}, nil
		}))
	})
}

func TestPoolSharesAssociations(t *testing.T) {
	poolTest(t, func(t *testing.T, p *Pool[string, *fakeAssociation]) {
		var opens sync.WaitGroup
		for range 4 {
			opens.Go(func() {
				_, err := p.Open(t.Context(), "")
				require.NoError(t, err)
			})
		}
		opens.Wait()
		all := p.Associations()
		require.Len(t, all, 2)
		p.Idled(all[0])
		require.True(t, all[0].retired)
		require.False(t, all[1].retired)
		p.Close()
		require.True(t, all[0].ended && all[1].ended)
		_, err := p.Open(t.Context(), "")
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// TestPoolForgetsAssociationsThatHaveEnded, at the latest when it makes another one.
func TestPoolForgetsAssociationsThatHaveEnded(t *testing.T) {
	poolTest(t, func(t *testing.T, p *Pool[string, *fakeAssociation]) {
		for range 10 {
			_, err := p.Open(t.Context(), "")
			require.NoError(t, err)
			all := p.Associations()
			require.Len(t, all, 1)
			all[0].ended, all[0].pairs = true, 0
		}
	})
}

// TestIdleAssociationLeavesTheOthers: sessions with another peer still share theirs.
func TestIdleAssociationLeavesTheOthers(t *testing.T) {
	poolTest(t, func(t *testing.T, p *Pool[string, *fakeAssociation]) {
		_, err := p.Open(t.Context(), "")
		require.NoError(t, err)
		first := p.Associations()[0]
		_, err = p.Open(t.Context(), "another")
		require.NoError(t, err)
		p.Idled(first)
		_, err = p.Open(t.Context(), "another")
		require.NoError(t, err)
		require.Len(t, p.Associations(), 2)
		_, err = p.Open(t.Context(), "")
		require.NoError(t, err)
		require.Len(t, p.Associations(), 3, "the one that is idle is not used again")
	})
}

// TestPoolTriesForItself: when the context of one call ends, another call that waits for the
// same association goes on.
func TestPoolTriesForItself(t *testing.T) {
	poolTest(t, func(t *testing.T, p *Pool[string, *fakeAssociation]) {
		hasty, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		go func() {
			_, err := p.Open(hasty, "")
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}()
		synctest.Wait()
		_, err := p.Open(t.Context(), "")
		require.NoError(t, err)
		_, err = p.Open(t.Context(), "no listener")
		require.ErrorContains(t, err, "refused")
	})
}

// TestPoolTellsAllOfAFailure: calls that wait for the association of another one fail with it, and not
// one after the other.
func TestPoolTellsAllOfAFailure(t *testing.T) {
	poolTest(t, func(t *testing.T, p *Pool[string, *fakeAssociation]) {
		begun := time.Now()
		var opens sync.WaitGroup
		for range 4 {
			opens.Go(func() {
				_, err := p.Open(t.Context(), "no listener")
				require.ErrorContains(t, err, "refused")
				require.Equal(t, time.Second, time.Since(begun))
			})
		}
		opens.Wait()
	})
}

// TestPoolWaitsAsLongAsTheContext: a call that waits for the association of another one ends with its own context; the
// association is made nevertheless.
func TestPoolWaitsAsLongAsTheContext(t *testing.T) {
	poolTest(t, func(t *testing.T, p *Pool[string, *fakeAssociation]) {
		go func() {
			_, err := p.Open(t.Context(), "")
			require.NoError(t, err)
		}()
		synctest.Wait()
		hasty, cancel := context.WithTimeoutCause(t.Context(), time.Second/2, errHasty)
		defer cancel()
		begun := time.Now()
		_, err := p.Open(hasty, "")
		require.ErrorIs(t, err, errHasty)
		require.Equal(t, time.Second/2, time.Since(begun))
		time.Sleep(time.Second)
		require.Len(t, p.Associations(), 1)
	})
}

var errHasty = errors.New("hasty")

func TestPoolGivesUp(t *testing.T) {
	poolTest(t, func(t *testing.T, p *Pool[string, *fakeAssociation]) {
		_, err := p.Open(t.Context(), "that ends")
		require.ErrorIs(t, err, errEnded)
	})
}

// TestPoolClosesWhatIsAboutToBeMade.
func TestPoolClosesWhatIsAboutToBeMade(t *testing.T) {
	poolTest(t, func(t *testing.T, p *Pool[string, *fakeAssociation]) {
		failed := make(chan error)
		go func() {
			_, err := p.Open(t.Context(), "")
			failed <- err
		}()
		synctest.Wait()
		p.Close()
		require.ErrorIs(t, <-failed, net.ErrClosed)
		require.True(t, p.Associations()[0].ended)
	})
}

func TestBacklogIsBounded(t *testing.T) {
	for _, n := range []int{-1, 0, 1} { // one at least
		backlogOfOne(t, NewBacklog(n, nil))
	}
}

func backlogOfOne(t *testing.T, b *Backlog) {
	ask := func() *fakeStream {
		f := newFake()
		f.says(17, "0000 0001")
		b.Ask(t.Context(), f)
		return f
	}
	first, second := ask(), ask()
	first.wantSent(t)
	second.wantSent(t, "17 0000 0004")
	r, err := b.Accept()
	require.NoError(t, err)
	r.Close()
	third := ask()
	require.True(t, b.Close())
	require.True(t, b.Closed())
	require.False(t, b.Close())
	third.wantSent(t, "17 0000 0004")
	ask().wantSent(t, "17 0000 0004")
	_, err = b.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

// TestBacklogTellsOfSessionsThatItRefuses, as long as it is open: Accept does not return them.
func TestBacklogTellsOfSessionsThatItRefuses(t *testing.T) {
	var told []error
	b := NewBacklog(1, func(remote net.Addr, cause error) {
		require.Equal(t, newFake().RemoteAddr(), remote)
		told = append(told, cause)
	})
	ask := func(ctx context.Context, first string) {
		f := newFake()
		f.says(17, first)
		b.Ask(ctx, f)
	}
	givenUp, giveUp := context.WithCancelCause(t.Context())
	giveUp(ErrGivenUp)
	ended, end := context.WithCancel(t.Context())
	end()
	ask(givenUp, "0000 0001")
	ask(ended, "0000 0001")
	ask(t.Context(), "0000 0002")
	ask(t.Context(), "0000 0001")
	ask(t.Context(), "0000 0001")
	require.True(t, b.Close())
	ask(t.Context(), "0000 0001")

	require.Len(t, told, 3)
	require.ErrorIs(t, told[0], ErrGivenUp)
	var illegal *ViolationError
	require.ErrorAs(t, told[1], &illegal)
	require.ErrorIs(t, told[2], errTooMany)
}

// TestBacklogTellsOfAnOutage once, and of none that is over; sessions still come.
func TestBacklogTellsOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBacklog(1, nil)
		b.SetOutage(syscall.EMFILE)
		b.SetOutage(nil)
		require.NoError(t, b.Outage())
		ask := func() {
			f := newFake()
			f.says(17, "0000 0001")
			b.Ask(t.Context(), f)
		}
		wants := func() {
			t.Helper()
			r, err := b.Accept()
			require.NoError(t, err)
			r.Close()
		}
		time.AfterFunc(time.Second, ask) // when Accept has looked at the outage
		wants()
		for range 2 {
			b.SetOutage(syscall.EMFILE)
			b.SetOutage(syscall.ENFILE)
			_, err := b.Accept()
			require.Equal(t, syscall.ENFILE, err)
			b.SetOutage(syscall.ENFILE)
			ask()
			wants()
			require.Equal(t, syscall.ENFILE, b.Outage())
			b.SetOutage(nil)
		}
		require.True(t, b.Close())
		_, err := b.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
	})
}
