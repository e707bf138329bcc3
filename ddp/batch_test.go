package ddp

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A batchQueue is a queue that takes messages with the RsvdULP of untagged in batches.
type batchQueue struct{ *scriptQueue }

func (q batchQueue) MayBatch(h *UntaggedHeader) bool { return h.RsvdULP == 0x43 }

func (q batchQueue) DeliverBatch(h *UntaggedHeader, lens []uint32) {
	q.bufs = q.bufs[len(lens):]
	q.c.delivered = append(q.c.delivered, fmt.Sprintf("batch qn=%d msn=%d lens=%d", h.QN, h.MSN, lens))
}

// arrivals are segments that come together.
type arrivals [][]byte

func (a *arrivals) Next() []byte {
	if len(*a) == 0 {
		return nil
	}
	next := (*a)[0]
	*a = (*a)[1:]
	return next
}

// conversesInBatches has n receives of eight octets of a region for queue 0, and gives the
// region and its octets.
func conversesInBatches(t *testing.T, n int) (*conversation, *stag.Region, []byte) {
	c := converse(t, 0)
	q := &scriptQueue{c: c}
	c.queues[0] = q
	c.s.Bind(0, batchQueue{q})
	r, mem := c.region(8*n, nil)
	for i := range n {
		q.bufs = append(q.bufs, []stag.Span{{Region: r, Off: uint64(8 * i), Len: 8}})
	}
	return c, r, mem
}

// together hands up segments as a receiver does, the batches among them at once.
func (c *conversation) together(segments ...[]byte) error {
	batch := arrivals(segments)
	for u := batch.Next(); u != nil; {
		n, rest, err := c.s.Take(c.seq, u, &batch)
		if err != nil {
			c.seq++
			return err
		}
		c.seq += uint64(n)
		u = rest
	}
	return nil
}

func whole(msn MSN, payload string) []byte { return untagged(true, 0, msn, 0, []byte(payload)) }

func TestDDP_36_46_47_MessagesThatComeTogetherAreDeliveredTogether(t *testing.T) {
	c, r, mem := conversesInBatches(t, 3)
	require.NoError(t, c.together(whole(1, "first"), whole(2, ""), whole(3, "the last")))
	c.wantDelivered("in one call", "batch qn=0 msn=1 lens=[5 0 8]")
	require.Equal(t, "first\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00the last", string(mem))
	require.NoError(t, c.table.Invalidate(t.Context(), r), "nothing is pinned any more")
}

func TestDDP_46_ABatchIsBounded(t *testing.T) {
	const n = 2*batchMax + 1
	c, _, _ := conversesInBatches(t, n)
	var segments [][]byte
	for i := range n {
		segments = append(segments, whole(MSN(i+1), "x"))
	}
	require.NoError(t, c.together(segments...))
	require.Len(t, c.delivered, 3)
	require.Empty(t, c.queues[0].bufs)
}

func TestDDP_31_46_47_BatchEndsBeforeWhatIsNotLikeIt(t *testing.T) {
	other := untagged(true, 0, 2, 0, []byte("b"))
	other[1] = 0x45
	c, r, _ := conversesInBatches(t, 8)
	require.NoError(t, c.together(whole(1, "a"), other, whole(3, "c")))
	c.wantDelivered("another RsvdULP: what comes before it is delivered before it",
		"batch qn=0 msn=1 lens=[1]", "qn=0 msn=2 len=1 ulp=45/00000000", "batch qn=0 msn=3 lens=[1]")
	require.NoError(t, c.together(whole(4, "a"), untagged(false, 0, 5, 0, []byte("bc")), untagged(true, 0, 5, 2, []byte("d")), whole(6, "e")))
	c.wantDelivered("a message of two segments", "batch qn=0 msn=4 lens=[1]", "qn=0 msn=5 len=3 ulp=43/00000000", "batch qn=0 msn=6 lens=[1]")
	require.NoError(t, c.together(whole(7, "a"), tagged(true, r.STag(), 0x1000, []byte("w")), whole(8, "b")))
	c.wantDelivered("a tagged one", "batch qn=0 msn=7 lens=[1]", fmt.Sprintf("tagged stag=%v ulp=40", r.STag()), "batch qn=0 msn=8 lens=[1]")
}

// Where segments may overtake each other only those in order, with nothing ahead of them,
// make a batch.
func TestDDP_44_46_NoBatchWhereSegmentsAreAhead(t *testing.T) {
	c, _, _ := conversesInBatches(t, 4)
	c.s.ahead.limit = 8
	c.seq = 1
	require.NoError(t, c.together(whole(2, "b")), "one comes early")
	c.wantDelivered("and waits")
	c.seq = 0
	require.NoError(t, c.together(whole(1, "a")))
	c.wantDelivered("which is delivered after the first", "qn=0 msn=1 len=1 ulp=43/00000000", "qn=0 msn=2 len=1 ulp=43/00000000")
	c.seq = 2
	require.NoError(t, c.together(whole(3, "c"), whole(4, "d")))
	c.wantDelivered("in order again", "batch qn=0 msn=3 lens=[1 1]")
}

// An error in a batch is found at its segment, when everything before it has been delivered.
func TestDDP_19_64_65_66_68_81_BatchesAreChecked(t *testing.T) {
	wrongVersion := whole(2, "b")
	wrongVersion[0] ^= 0x03
	for that, v := range map[string]struct {
		code   transport.Code
		second []byte
	}{
		"a message too far":    {transport.DDPMSNRange, whole(3, "b")},
		"the same once more":   {transport.DDPMSNRange, whole(1, "b")},
		"too long":             {transport.DDPTooLong, whole(2, "123456789")},
		"a queue there is not": {transport.DDPQueue, untagged(true, 9, 2, 0, nil)},
		"an offset":            {transport.DDPOffset, untagged(true, 0, 2, 9, nil)},
		"no version":           {transport.DDPUntaggedVersion, wrongVersion},
	} {
		c, _, mem := conversesInBatches(t, 3)
		e := c.isFault(that, v.code, c.together(whole(1, "a"), v.second, whole(3, "c")))
		require.Equal(t, v.second[:UntaggedLen], e.Header, that)
		c.wantDelivered(that, "batch qn=0 msn=1 lens=[1]")
		require.Equal(t, make([]byte, 23), mem[1:], that)
		require.NoError(t, c.together(whole(2, "b")), "nothing is taken any more")
		c.wantDelivered(that)
	}

	c, _, _ := conversesInBatches(t, 1)
	_ = c.isFault("no buffer", transport.DDPNoBuffer, c.together(whole(1, "a"), whole(2, "b")))
	c.wantDelivered("but for the first", "batch qn=0 msn=1 lens=[1]")

	c, r, mem := conversesInBatches(t, 3)
	require.NoError(t, c.together(whole(1, "a")))
	require.NoError(t, c.table.Invalidate(t.Context(), r))
	require.ErrorIs(t, c.together(whole(2, "b")), stag.ErrInvalid)
	require.Equal(t, make([]byte, 23), mem[1:], "nothing is placed into what was revoked")
}

// An invalidating is a batch during which a region is revoked.
type invalidating struct {
	arrivals
	revoke func()
}

func (i *invalidating) Next() []byte {
	if len(i.arrivals) == 1 {
		i.revoke()
	}
	return i.arrivals.Next()
}

func TestDDP_81_ValidityCanBeRevokedInABatch(t *testing.T) {
	c, r, mem := conversesInBatches(t, 3)
	batch := &invalidating{arrivals: arrivals{whole(2, "b"), whole(3, "c")}, revoke: func() {
		require.ErrorIs(t, c.table.Invalidate(done(t), r), context.Canceled, "the region is pinned")
		require.False(t, r.Valid())
	}}
	n, rest, err := c.s.Take(0, whole(1, "a"), batch)
	require.NoError(t, err)
	require.NoError(t, c.table.Invalidate(done(t), r), "the batch has unpinned the region")
	require.Equal(t, 2, n)
	require.Equal(t, whole(3, "c"), rest)
	require.Equal(t, "a\x00\x00\x00\x00\x00\x00\x00b\x00\x00\x00\x00\x00\x00\x00\x00", string(mem[:17]), "what comes after is not placed")
}

func TestDDP_81_BatchesAreForMemoryThatIsQuick(t *testing.T) {
	c, _, _ := conversesInBatches(t, 1)
	buffer, err := c.table.RegisterBuffer(&scriptBuffer{mem: octets(8)}, stag.Options{Access: stag.LocalWrite, Scope: alice})
	require.NoError(t, err)
	durable, _ := c.region(8, func(o *stag.Options) { o.Flusher = noFlush{} })
	for _, r := range []*stag.Region{buffer, durable} {
		c.queues[0].bufs = [][]stag.Span{{{Region: r, Len: 8}}}
		require.NoError(t, c.together(whole(MSN(c.seq+1), "a")))
		c.wantDelivered("no pin is held while a Buffer or a medium works", fmt.Sprintf("qn=0 msn=%d len=1 ulp=43/00000000", c.seq))
	}
	c.queues[0].bufs = [][]stag.Span{{{Mem: make([]byte, 8), Len: 8}}}
	require.NoError(t, c.together(whole(3, "a")), "and what is no region is taken alone")
	c.wantDelivered("too", "qn=0 msn=3 len=1 ulp=43/00000000")
}

type noFlush struct{}

func (noFlush) Flush(context.Context, int64, int64) error { return nil }

// TestBatchUnpinsEveryRegion, even if its messages go to several in turn.
func TestBatchUnpinsEveryRegion(t *testing.T) {
	c, r, _ := conversesInBatches(t, 1)
	other, mem := c.region(8, nil)
	c.queues[0].bufs = nil
	for range 2 {
		for _, to := range []*stag.Region{r, other} {
			c.queues[0].bufs = append(c.queues[0].bufs, []stag.Span{{Region: to, Len: 8}})
		}
	}
	require.NoError(t, c.together(whole(1, "a"), whole(2, "b"), whole(3, "c"), whole(4, "d")))
	require.Equal(t, "d", string(mem[:1]))
	for _, to := range []*stag.Region{r, other} {
		require.NoError(t, c.table.Invalidate(done(t), to), "nothing is pinned")
	}
}

// TestBatchUnpinsOnceBeforeARegionThatIsInvalid: the region of the messages before it has as many pins as without the batch.
func TestBatchUnpinsOnceBeforeARegionThatIsInvalid(t *testing.T) {
	c, r, _ := conversesInBatches(t, 1)
	revoked, _ := c.region(8, nil)
	require.NoError(t, c.table.Invalidate(t.Context(), revoked))
	c.queues[0].bufs = append(c.queues[0].bufs, []stag.Span{{Region: revoked, Len: 8}})
	require.ErrorIs(t, c.together(whole(1, "a"), whole(2, "b")), stag.ErrInvalid)
	c.wantDelivered("the first", "batch qn=0 msn=1 lens=[1]")
	require.NoError(t, c.table.Invalidate(done(t), r), "its region has no pin, and not one too few")
}

// TestMidMessage: only the last segment counts, whether it came in a batch or not.
func TestMidMessage(t *testing.T) {
	c, r, _ := conversesInBatches(t, 3)
	require.False(t, c.s.MidMessage(), "nothing has come")
	require.NoError(t, c.together(untagged(false, 0, 1, 0, []byte("a"))))
	require.True(t, c.s.MidMessage())
	require.NoError(t, c.together(untagged(true, 0, 1, 1, []byte("b"))))
	require.False(t, c.s.MidMessage())
	require.NoError(t, c.together(tagged(false, r.STag(), 0x1000, []byte("w"))))
	require.True(t, c.s.MidMessage())
	require.NoError(t, c.together(whole(2, "c"), whole(3, "d")))
	c.wantDelivered("two at once", "qn=0 msn=1 len=2 ulp=43/00000000", "batch qn=0 msn=2 lens=[1 1]")
	require.False(t, c.s.MidMessage())
}

// TestPlacementsOfABatchAreTold, like those of single messages, even if the region is not durable.
func TestPlacementsOfABatchAreTold(t *testing.T) {
	c, _, _ := conversesInBatches(t, 1)
	var dirty []string
	r, _ := c.region(16, func(o *stag.Options) {
		o.Dirty = func(off, n int64) { dirty = append(dirty, fmt.Sprintf("%d at %d", n, off)) }
	})
	c.queues[0].bufs = nil
	for i := range 2 {
		c.queues[0].bufs = append(c.queues[0].bufs, []stag.Span{{Region: r, Off: uint64(8 * i), Len: 8}})
	}
	require.NoError(t, c.together(whole(1, "first"), whole(2, "the last")))
	c.wantDelivered("in one call", "batch qn=0 msn=1 lens=[5 8]")
	require.Equal(t, []string{"5 at 0", "8 at 8"}, dirty)
}
