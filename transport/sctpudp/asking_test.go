package sctpudp

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSEC_42_OldestSessionNotAskedForMakesRoom: a peer that uses streams and asks for
// nothing does not keep others out.
func TestSEC_42_OldestSessionNotAskedForMakesRoom(t *testing.T) {
	p := newPair(t)
	p.l.limit = 2
	silent := func() (ended chan struct{}) {
		ended = make(chan struct{})
		s, err := p.c.Open(context.Background(), p.l.Addr().String())
		require.NoError(t, err)
		before := p.l.asking.Len()
		go func() {
			defer close(ended)
			p.l.asked(s.(*stream)) // nothing ever comes on it
		}()
		require.Eventually(t, func() bool { return p.l.asking.Len() == before+1 }, 5*time.Second, time.Millisecond)
		return ended
	}
	oldest, next := silent(), silent()
	require.True(t, p.l.admits(), "there is room for one more")
	select {
	case <-oldest:
	case <-time.After(setupTime / 2):
		require.Fail(t, "the oldest is not given up")
	}
	select {
	case <-next:
		require.Fail(t, "one is enough")
	default:
	}
	p.works()
}

// TestBacklogOfNone is one of one session.
func TestBacklogOfNone(t *testing.T) {
	l, err := Listen(t.Context(), Config{}, "127.0.0.1:0", 0)
	require.NoError(t, err)
	defer l.End()
	p := &pair{TB: t, l: l, c: NewClient(Config{})}
	defer p.c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	p.client, p.server = p.session(ctx)
	p.works()
}
