package qpconn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rdmap"
)

const stallWait = 8 * time.Second

func watched(_ *end, c *Config) { c.StallWait = stallWait }

// passes lets time pass, and returns what the owner was told up to then.
func (e *end) passes(d time.Duration) []string {
	time.Sleep(d)
	synctest.Wait()
	return e.heard()
}

func TestNetworkThatTakesNothing(t *testing.T) {
	inBubble(t, watched, func(e *end) {
		require.Empty(e, e.passes(time.Hour), "there is no work")
		e.llp.change(func() { e.llp.full = true })
		e.queues(rdmap.KindWrite, 1, nil)
		require.Empty(e, e.passes(stallWait-1))
		require.Equal(e, []string{"no progress"}, e.passes(stallWait/progressLooks+1))
		require.Len(e, e.passes(time.Hour), 1, "once")

		e.llp.change(func() { e.llp.full = false })
		e.hasSent(1, "it takes something again")
		require.Len(e, e.passes(time.Hour), 1)
		e.llp.change(func() { e.llp.full = true })
		e.queues(rdmap.KindWrite, 1, nil)
		require.Len(e, e.passes(stallWait*2), 2, "once each time")
	})
}

func TestReadThatIsNotAnswered(t *testing.T) {
	inBubble(t, watched, func(e *end) {
		e.queues(rdmap.KindRead, 1, nil)
		for range 2 * progressLooks { // later Writes are no progress of the Read
			e.queues(rdmap.KindWrite, 1, nil)
			e.passes(stallWait / progressLooks)
		}
		require.Equal(e, []string{"no progress"}, e.heard())
		e.llp.arrives(aResponse)
		require.Len(e, e.passes(time.Hour), 1, "it is answered")
	})
}

// TestSlowNetwork: the network takes a message now and then.
func TestSlowNetwork(t *testing.T) {
	inBubble(t, watched, func(e *end) {
		e.llp.change(func() { e.llp.most, e.llp.full = 1, true })
		e.queues(rdmap.KindWrite, 4, nil)
		for i := range 4 {
			require.Empty(e, e.passes(stallWait-stallWait/progressLooks))
			e.llp.change(func() { e.llp.takes = 1 })
			e.hasSent(i+1, "it takes one")
		}
	})
}

// TestShortestStallWait: progress is checked at most once a millisecond, so that an idle connection costs little.
func TestShortestStallWait(t *testing.T) {
	shortest := func(_ *end, c *Config) { c.StallWait = 1 }
	inBubble(t, shortest, func(e *end) {
		e.llp.change(func() { e.llp.full = true })
		e.queues(rdmap.KindWrite, 1, nil)
		require.Empty(e, e.passes(progressLooks*time.Millisecond-1))
		require.Equal(e, []string{"no progress"}, e.passes(time.Millisecond+1))
	})
}

func TestProgressIsNotWatchedAfterTheEnd(t *testing.T) {
	inBubble(t, watched, func(e *end) {
		e.llp.change(func() { e.llp.full = true })
		e.queues(rdmap.KindWrite, 1, nil)
		e.passes(stallWait / 2)
		e.aborts()
		require.NotContains(e, e.passes(time.Hour), "no progress")
	})
}
