package commit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
)

// A kicked conversation sends when it is kicked, in the goroutine that has an answer for it, as a
// connection does.
type kicked struct{ *conversation }

func (k kicked) Kick() { _ = k.flush() }

// kickedBy is a conversation of another stream, beside c.
func kickedBy(c *conversation, scope stag.Scope) *conversation {
	other := &conversation{T: c.T, table: c.table}
	cfg := Config{Table: c.table, Scope: scope, Limits: Offer{Regions: 4}}
	cfg.Task = func(f func()) func() { return func() { other.tasks = append(other.tasks, f) } }
	other.ext = NewExtension(cfg)
	other.s = rdmap.New(rdmap.Config{
		Table: c.table, Scope: scope, IRD: 4, ORD: 4, SendDepth: 16, Receives: other, Events: kicked{other},
		Extensions: []*rdmap.Extension{other.ext},
	})
	return other
}

// invalidates posts a work request, which is done when the stream is kicked.
func (c *conversation) invalidates(r *stag.Region) {
	_, err := c.s.Post(1, func(_ int, q *rdmap.Request) error {
		q.Kind, q.Invalidate = rdmap.KindInvalidate, r.STag()
		return nil
	})
	require.NoError(c, err)
}

// TestCMT_25_53_AnswerThatWaitsForAnotherCommit: a stream that sends an answer may have to invalidate a region first, and
// so to wait for the Commit of another stream, which the same sync serves or the next.
func TestCMT_25_53_AnswerThatWaitsForAnotherCommit(t *testing.T) {
	for _, another := range []time.Duration{0, time.Millisecond} { // begins so much later
		synctest.Test(t, func(t *testing.T) {
			d := disk{takes: time.Second}
			g := newGroup(64, true, d.sync)
			c := converse(t, nil)
			r, _ := c.region(func(o *stag.Options) {
				durableBy(g)(o)
				o.Scope.Stream = 0
			})
			other := kickedBy(c, bob)
			other.sends("a Commit", writeOf(part(r, 0, 4), "some"), requestOf(1, ask(1, part(r, 0, 4))))
			time.Sleep(another)
			c.sends("and one of another stream", writeOf(part(r, 4, 4), "more"), requestOf(1, ask(1, part(r, 4, 4))))
			other.invalidates(r)
			time.Sleep(time.Minute)
			c.wantSegment("that is answered", responseOf(1, 1, 0))
			other.wantSegment("and so is the first", responseOf(1, 1, 0))
			require.False(t, r.Valid())
		})
	}
}

// TestCMT_25_53_AnswerThatWaitsForALaterCommit: the same for a Commit of the stream itself, which has waited
// for the answered one.
func TestCMT_25_53_AnswerThatWaitsForALaterCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kickedBy(converse(t, nil), alice)
		first, _ := c.region(nil)
		second, _ := c.region(nil)
		c.sends("two Commits", requestOf(1, ask(1, part(first, 0, 4))), requestOf(2, ask(2, part(second, 0, 4))))
		c.invalidates(second)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			laterFirst(c)
		}()
		synctest.Wait()
		select {
		case <-ended:
		default:
			require.Fail(t, "the goroutine that ends the first waits for the second, which it is to end, too")
		}
		c.wantSegment("the first is answered", responseOf(1, 1, 0))
		c.wantSegment("and the second", responseOf(2, 2, 0))
		require.False(t, second.Valid())
	})
}

// TestCMT_25_53_AnswerThatWaitsForAFlush: the same for a Flush that waits, within a placement, as the Flush of a
// region with WriteThrough does.
func TestCMT_25_53_AnswerThatWaitsForAFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disk{takes: time.Second}
		g := newGroup(64, true, d.sync)
		c := converse(t, nil)
		r, _ := c.region(func(o *stag.Options) {
			o.Scope.Stream, o.Flusher = 0, g
			o.Dirty = func(off, n int64) { touch(g, off, n) }
			o.Through = func(off, n int64) { _ = flush(g, off, n) }
		})
		placed := make(chan error, 1)
		go func() { placed <- c.send(writeOf(part(r, 0, 4), "some")) }()
		synctest.Wait()
		other := kickedBy(c, bob)
		other.sends("a Commit of the same octets", requestOf(1, ask(1, part(r, 0, 4))))
		other.invalidates(r)
		time.Sleep(time.Minute)
		require.Len(t, placed, 1, "the Write is placed before the answer that waits for it")
		other.wantSegment("which follows", responseOf(1, 1, 0))
		require.False(t, r.Valid())
	})
}

// through registers a Buffer with WriteThrough, as the library does.
func (c *conversation) through(b *Buffer, scope stag.Scope) *stag.Region {
	o := stag.Options{Access: stag.LocalWrite | stag.Remote, Scope: scope, Flusher: b}
	o.Through = func(off, n int64) { _ = b.Flush(c.Context(), off, n) }
	r, err := c.table.RegisterBuffer(b, o)
	require.NoError(c, err)
	return r
}

// TestCMT_25_44_FollowOnThatIsWrittenThrough: the goroutine that stores it runs the sync that it would wait for.
func TestCMT_25_44_FollowOnThatIsWrittenThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := NewBuffer(&counting{answering: answering{atomic: true}})
		require.NoError(t, err)
		c := converse(t, nil)
		r := c.through(b, alice)
		_, err = b.WriteAt([]byte("local"), 0)
		require.NoError(t, err)
		c.sends("a Commit with a follow-on", requestOf(1, ask(1, part(r, 0, 5)).then(r.STag(), 16, 42)))
		synctest.Wait()
		c.wantSegment("is answered", responseOf(1, 1, 0))
		require.EqualValues(t, 2, b.Syncs())
	})
}
