package ddp

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A reader is an Upper that awaits messages.
type reader struct {
	*conversation
	await []awaited
}

type awaited struct {
	stag stag.STag
	to   uint64
	n    uint64
}

func (r *reader) PredictTagged(k int) (h TaggedHeader, access stag.Access, n uint64, ok bool) {
	if k >= len(r.await) {
		return h, 0, 0, false
	}
	a := r.await[k]
	return TaggedHeader{RsvdULP: 0x42, STag: a.stag, TO: a.to}, stag.LocalWrite, a.n, true
}

// own gives no right to peers.
func own(o *stag.Options) { o.Access = stag.LocalWrite }

// predicted is what a Stream that awaits messages predicts, in words, with segments of 10
// octets of payload.
func (c *conversation) predicted(room int, await ...awaited) (told []string) {
	s := New(Config{Table: c.table, Scope: alice, Upper: &reader{c, await}})
	for _, f := range s.Predict(nil, 10+TaggedLen, room) {
		h, err := ParseTagged(f.Head[:])
		require.NoError(c, err)
		end := ""
		if h.Last {
			end = ", the last"
		}
		told = append(told, fmt.Sprintf("%d to %#x%s", len(f.Payload), h.TO, end))
	}
	s.Unpin()
	return told
}

func TestWhatIsAwaitedIsPredicted(t *testing.T) {
	c := converse(t, 0)
	a, mem := c.region(100, own)
	b, _ := c.region(100, own)
	open, _ := c.region(100, nil)
	again, err := c.table.Register(mem, stag.Options{Access: stag.LocalWrite, Scope: stag.Scope{PD: 1}})
	require.NoError(t, err)

	require.Equal(t, []string{"10 to 0x1000", "10 to 0x100a", "5 to 0x1014, the last", "10 to 0x1030, the last"},
		c.predicted(1000, awaited{a.STag(), 0x1000, 25}, awaited{b.STag(), 0x1030, 10}), "message after message")
	require.Equal(t, []string{"10 to 0x1000"},
		c.predicted(19, awaited{a.STag(), 0x1000, 25}, awaited{b.STag(), 0x1030, 10}), "whole segments only, where there is no room for all")
	require.Equal(t, []string{"10 to 0x1000, the last"},
		c.predicted(20, awaited{a.STag(), 0x1000, 10}, awaited{a.STag(), 0x1009, 10}), "not two in the same memory")
	require.Equal(t, []string{"10 to 0x1000, the last"},
		c.predicted(20, awaited{a.STag(), 0x1000, 10}, awaited{again.STag(), 5, 10}), "by whatever name")
	require.Equal(t, []string{"10 to 0x1000, the last"},
		c.predicted(20, awaited{a.STag(), 0x1000, 10}, awaited{open.STag(), 0x1000, 10}), "nothing where peers may write")
	require.Empty(t, c.predicted(21, awaited{a.STag(), 0x1000, 10}, awaited{a.STag(), 0x1009, 10}),
		"nothing at all, if that is less than half of what may have come")
	require.Empty(t, c.predicted(1000, awaited{0xdead, 0, 10}), "nothing for an STag that does not exist")
	require.Empty(t, c.predicted(1000, awaited{a.STag(), 0x1000 + 95, 10}), "or beyond its bounds")
	require.Empty(t, c.predicted(1000, awaited{a.STag(), 0x1000, 0}, awaited{b.STag(), 0x1000, 10}), "an empty message may have any header")
	require.NoError(t, c.table.Invalidate(t.Context(), a), "nothing is left pinned")
	require.Empty(t, c.predicted(1000, awaited{a.STag(), 0x1000, 10}))
}

func TestNothingIsPredictedWhereSegmentsOvertakeEachOther(t *testing.T) {
	c := converse(t, 0)
	a, _ := c.region(100, own)
	s := New(Config{Table: c.table, Scope: alice, Upper: &reader{c, []awaited{{a.STag(), 0x1000, 25}}}, Window: 4})
	require.Empty(t, s.Predict(nil, 100, 1000))
}

func TestWhatWasPredictedIsDelivered(t *testing.T) {
	c := converse(t, 0)
	c.access = stag.LocalWrite
	a, _ := c.region(100, own)
	s := New(Config{Table: c.table, Scope: alice, Upper: &reader{c, []awaited{{a.STag(), 0x1000, 25}}}})
	segs := s.Predict(nil, 20+TaggedLen, 1000)
	s.Unpin()
	require.NoError(t, s.Placed(0, &segs[0]))
	require.Empty(t, c.delivered, "not before the message is whole")
	require.NoError(t, s.Placed(1, &segs[1]))
	require.Len(t, c.delivered, 1)

	require.NoError(t, c.table.Invalidate(t.Context(), a))
	err := s.Placed(2, &segs[0])
	require.Equal(t, transport.DDPInvalidSTag, faultIn(t, err).Code, "it is checked as any other segment")
	require.NoError(t, s.Placed(3, &segs[1]), "and what comes after an error is dropped")
}

// A watching is a Watch whose time advances.
type watching struct {
	now  uint64
	told []string
}

func (w *watching) Began() uint64 { return w.now }

func (w *watching) Wrote(began uint64, off, n int64, _ error) {
	w.told = append(w.told, fmt.Sprint(began, off, n))
}

// TestCMT_30_PredictedPayloadBeganBeforeItWasRead: the memory is written before the segment is
// checked, and its owner is told so.
func TestCMT_30_PredictedPayloadBeganBeforeItWasRead(t *testing.T) {
	c := converse(t, 0)
	c.access = stag.LocalWrite
	w := watching{now: 7}
	var dirty []int64
	a, _ := c.region(100, func(o *stag.Options) {
		o.Access, o.Watch, o.Dirty = stag.LocalWrite, &w, func(off, n int64) { dirty = append(dirty, off, n) }
	})
	s := New(Config{Table: c.table, Scope: alice, Upper: &reader{c, []awaited{{a.STag(), 0x1000, 25}}}})
	segs := s.Predict(nil, 20+TaggedLen, 1000)
	w.now = 8
	s.Unpin()
	require.NoError(t, s.Placed(0, &segs[0]))
	require.NoError(t, s.Placed(1, &segs[1]))
	require.Equal(t, []string{"7 0 20", "7 20 5"}, w.told)
	require.Equal(t, []int64{0, 20, 20, 5}, dirty)
}

func faultIn(t *testing.T, err error) *transport.Fault {
	var f *transport.Fault
	require.ErrorAs(t, err, &f)
	return f
}

// TestWhatWasPredictedIsToldToTheOwnerOfTheMemory: the octets count as written when their
// segment has been verified, and the region is free at once.
func TestWhatWasPredictedIsToldToTheOwnerOfTheMemory(t *testing.T) {
	c := converse(t, 0)
	c.access = stag.LocalWrite
	var told []int64
	r, _ := c.region(100, func(o *stag.Options) {
		o.Access, o.Dirty = stag.LocalWrite, func(off, n int64) { told = append(told, off, n) }
	})
	s := New(Config{Table: c.table, Scope: alice, Upper: &reader{c, []awaited{{r.STag(), 0x1007, 25}}}})
	segs := s.Predict(nil, 20+TaggedLen, 1000)
	require.Len(t, segs, 2)
	require.Empty(t, told, "predicted is not written")
	s.Unpin()
	require.NoError(t, s.Placed(0, &segs[0]))
	require.Equal(t, []int64{7, 20}, told)
	require.NoError(t, s.Placed(1, &segs[1]))
	require.Equal(t, []int64{7, 20, 27, 5}, told)
	require.NoError(t, s.Placed(1, &segs[1]), "the same once more")
	require.Equal(t, []int64{7, 20, 27, 5}, told, "is of the past")
	require.Len(t, c.delivered, 1)

	require.NoError(t, s.Segment(2, tagged(true, r.STag(), 0x1000, []byte("x"))), "what comes after it has its number")
	require.Len(t, c.delivered, 2)
	require.NoError(t, c.table.Invalidate(done(t), r), "nothing is pinned")
	err := s.Placed(3, &segs[0])
	var e *SegmentError
	require.ErrorAs(t, err, &e)
	require.Equal(t, TaggedLen+20, e.Len, "the report has the length of the whole segment")
	require.Equal(t, []int64{7, 20, 27, 5, 0, 1}, told, "and what is refused was not written")
}

// TestPredictedMemoryIsPinnedUntilUnpin: the owner does not get it back while something may be
// read into it.
func TestPredictedMemoryIsPinnedUntilUnpin(t *testing.T) {
	c := converse(t, 0)
	a, _ := c.region(100, own)
	b, _ := c.region(100, own)
	s := New(Config{Table: c.table, Scope: alice, Upper: &reader{c, []awaited{{a.STag(), 0x1000, 25}, {b.STag(), 0x1000, 25}}}})
	require.NotEmpty(t, s.Predict(nil, 20+TaggedLen, 1000))
	for _, r := range []*stag.Region{a, b} {
		require.ErrorIs(t, c.table.Invalidate(done(t), r), context.Canceled)
	}
	s.Unpin()
	s.Unpin()
	for _, r := range []*stag.Region{a, b} {
		require.NoError(t, c.table.Invalidate(done(t), r))
	}
	require.Empty(t, s.Predict(nil, 20+TaggedLen, 1000), "and nothing is left of it")
	s.Unpin()
}

// TestManyShortMessagesAreNotPredicted: each is compared with all before it, and one read takes no more than some
// hundred pieces. Few of them may be between long ones, or all that is to come.
func TestManyShortMessagesAreNotPredicted(t *testing.T) {
	c := converse(t, 0)
	r, _ := c.region(1<<20, own)
	var short []awaited
	for i := range 1024 {
		short = append(short, awaited{r.STag(), 0x1000 + uint64(64*i), 64})
	}
	predicted := func(await []awaited) int {
		s := New(Config{Table: c.table, Scope: alice, Upper: &reader{c, await}})
		defer s.Unpin()
		return len(s.Predict(nil, 10_000+TaggedLen, 480<<10))
	}
	require.Zero(t, predicted(short))
	require.Equal(t, 16, predicted(short[:16]))
	long := awaited{r.STag(), 0x1000 + 1<<17, 300_000}
	require.Equal(t, mostPredicted-1+30, predicted(slices.Concat(short[:16], []awaited{long}, short[16:])), "with one that is long")
	require.NoError(t, c.table.Invalidate(done(t), r), "nothing is left pinned")
}

// TestNothingIsPredictedThatCannotBe: no room, no payload in a segment, no stream.
func TestNothingIsPredictedThatCannotBe(t *testing.T) {
	c := converse(t, 0)
	r, mem := c.region(100, own)
	half, err := c.table.Register(mem[50:], stag.Options{Access: stag.LocalWrite, Scope: stag.Scope{PD: 1}})
	require.NoError(t, err)
	file, err := c.table.RegisterBuffer(&scriptBuffer{mem: octets(100)}, stag.Options{Access: stag.LocalWrite, Scope: alice})
	require.NoError(t, err)
	require.Empty(t, c.predicted(1000, awaited{file.STag(), 0, 10}), "a Buffer is no memory")
	require.Empty(t, c.predicted(0, awaited{r.STag(), 0x1000, 10}))
	require.Equal(t, []string{"1 to 0x1000, the last"}, c.predicted(1, awaited{r.STag(), 0x1000, 1}))
	require.Equal(t, []string{"10 to 0x1000, the last", "10 to 0x100a, the last"},
		c.predicted(20, awaited{r.STag(), 0x1000, 10}, awaited{r.STag(), 0x100a, 10}), "side by side is not the same memory")
	require.Equal(t, []string{"10 to 0x100a, the last", "10 to 0x1000, the last"},
		c.predicted(20, awaited{r.STag(), 0x100a, 10}, awaited{r.STag(), 0x1000, 10}), "whichever is first")
	require.Equal(t, []string{"1 to 0x1032, the last"},
		c.predicted(2, awaited{r.STag(), 0x1032, 1}, awaited{half.STag(), 0, 10}), "the same octets are, by another name")
	require.Equal(t, []string{"10 to 0x0, the last"},
		c.predicted(20, awaited{half.STag(), 0, 10}, awaited{r.STag(), 0x1032 - 9, 10}))
	require.Equal(t, []string{"10 to 0x1000"}, c.predicted(20, awaited{r.STag(), 0x1000, 30}), "the last of what there is room for is not told: it may be more")

	s := New(Config{Table: c.table, Scope: alice, Upper: &reader{c, []awaited{{r.STag(), 0x1000, 25}}}})
	require.Empty(t, s.Predict(nil, TaggedLen, 1000), "segments without payload")
	require.Error(t, s.Segment(0, tagged(true, 0xdead, 0, []byte("x"))))
	require.Empty(t, s.Predict(nil, 100, 1000), "a stream that has ended")
	none := New(Config{Table: c.table, Scope: alice, Upper: c})
	require.Empty(t, none.Predict(nil, 100, 1000), "an upper layer that predicts nothing")
}

// done returns a context that is over.
func done(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
