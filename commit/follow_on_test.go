package commit

import (
	"slices"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// watchedBy makes a Latch for f the Flusher of a region, as the library does for a user's own
// Flusher.
func watchedBy(f Flusher) func(*stag.Options) {
	return func(o *stag.Options) {
		l := NewLatch(f)
		o.Flusher, o.Watch = l, l
	}
}

// TestCMT_30_44_FollowOnIsAskedForAgain: a follow-on that was stored, and that a sync has lost, is stored
// once more, although the octets there suggest that it need not be.
func TestCMT_30_44_FollowOnIsAskedForAgain(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		c := converse(t, nil)
		r, _ := c.region(watchedBy(&c.media))
		c.media.fail = map[int64]error{16: syscall.EIO}
		c.sends("a follow-on", requestOf(1, ask(1, part(r, 0, 8)).then(r.STag(), r.BaseTO()+16, 42)))
		c.wantAnswer("that is lost", 1, 1, MakeStatus(NoRegion, FollowOnFailed))
		c.media.fail = nil
		c.sends("a Commit of its place", requestOf(2, ask(2, part(r, 16, 8))))
		c.wantAnswer("is told so", 2, 2, MakeStatus(0, DataLost))
		c.sends("the same again", requestOf(3, ask(3, part(r, 0, 8)).then(r.STag(), r.BaseTO()+16, 42)))
		c.wantAnswer("makes it durable", 3, 3, 0)
	})
	t.Run("a file", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := converse(t, nil)
			disk := &counting{answering: answering{atomic: true}, err: syscall.EIO}
			b, err := NewBuffer(disk)
			require.NoError(t, err)
			r, err := c.table.RegisterBuffer(b, stag.Options{Access: stag.LocalWrite | stag.Remote, Scope: alice, Flusher: b})
			require.NoError(t, err)
			c.sends("a follow-on", requestOf(1, ask(1, Region{}).then(r.STag(), 16, 42)))
			synctest.Wait()
			c.wantSegment("that is lost", responseOf(1, 1, MakeStatus(NoRegion, FollowOnFailed)))
			disk.err = nil
			c.sends("the same again", requestOf(2, ask(2, Region{}).then(r.STag(), 16, 42)))
			synctest.Wait()
			c.wantSegment("makes it durable", responseOf(2, 2, 0))
			require.Equal(t, 2, disk.writes, "since it was written again")
		})
	})
}

// A counting buffer counts what is written to it, and fails as the test says.
type counting struct {
	answering
	writes int
	err    error
}

func (c *counting) WriteAt(p []byte, off int64) (int, error) {
	c.writes++
	return c.answering.WriteAt(p, off)
}

func (c *counting) Sync() error { return c.err }

// TestCMT_16_44_CommitCoversTheFollowOnBeforeIt: a Commit of octets that an earlier follow-on has
// stored is no success while they are not durable.
func TestCMT_16_44_CommitCoversTheFollowOnBeforeIt(t *testing.T) {
	t.Run("that is lost", func(t *testing.T) {
		c := converse(t, nil)
		r, _ := c.region(watchedBy(&c.media))
		c.media.fail = map[int64]error{16: syscall.EIO}
		c.sends("a follow-on, and Commits of its place, and of another",
			requestOf(1, ask(1, part(r, 0, 8)).then(r.STag(), r.BaseTO()+16, 42)),
			requestOf(2, ask(2, part(r, 20, 1))), requestOf(3, ask(3, part(r, 24, 8))))
		laterFirst(c)
		c.wantSegment("the follow-on is lost", responseOf(1, 1, MakeStatus(NoRegion, FollowOnFailed)))
		c.wantSegment("a Commit of it is told", responseOf(2, 2, MakeStatus(0, DataLost)))
		c.wantSegment("and no other", responseOf(3, 3, 0))
	})
	t.Run("that is durable later", func(t *testing.T) {
		c := converse(t, nil)
		r, _ := c.region(nil)
		c.media.fail = map[int64]error{16: ErrTransient}
		c.sends("a follow-on, and a Commit of its place, with another follow-on",
			requestOf(1, ask(1, part(r, 0, 8)).then(r.STag(), r.BaseTO()+16, 42)),
			requestOf(2, ask(2, part(r, 20, 1)).then(r.STag(), r.BaseTO()+24, 43)))
		laterFirst(c)
		c.wantSegment("it is not durable", responseOf(1, 1, MakeStatus(NoRegion, FollowOnFailed)))
		c.wantSegment("and then it is", responseOf(2, 2, 0))
		require.Equal(t, []Range{{20, 1}, {0, 8}, {16, 8}, {20, 1}, {24, 8}}, c.media.flushed)
		c.sends("a Commit after that", requestOf(3, ask(3, part(r, 0, 8))))
		c.wantAnswer("is done once", 3, 3, 0)
		require.Len(t, c.media.flushed, 6)
	})
}

// laterFirst runs the tasks that were started, the last one first, and then those that they start.
func laterFirst(c *conversation) {
	tasks := c.tasks
	c.tasks = nil
	for _, f := range slices.Backward(tasks) {
		f()
	}
	c.run()
}

// TestCMT_9_RegionLimitWithoutAFollowOn: the room of a follow-on takes no region in its place.
func TestCMT_9_RegionLimitWithoutAFollowOn(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(nil)
	five := slices.Repeat([]Region{part(r, 8, 1)}, 5)
	c.sends("as many regions as were offered", requestOf(1, ask(1, five[:4]...)))
	c.wantAnswer("are served", 1, 1, 0)
	flushed := len(c.media.flushed)
	c.wantRefused("one more is too many", transport.DDPTooLong, requestOf(2, ask(2, five...)))
	require.Len(t, c.media.flushed, flushed, "and nothing of it is done")
}
