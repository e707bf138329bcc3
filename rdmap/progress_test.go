package rdmap

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// wantProgress checks whether the oldest request has advanced, and returns its progress.
func (c *conversation) wantProgress(that string, changes, busy bool, before Progress) Progress {
	c.Helper()
	now, waits := c.s.Progress()
	require.Equal(c, busy, waits, that)
	require.Equal(c, changes, now != before, that)
	return now
}

func TestProgressIsThatOfTheOldestRequest(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(64, nil)
	before, busy := c.s.Progress()
	require.False(t, busy)
	c.post(reads(r, 1)...)
	before = c.wantProgress("it is not sent", false, true, before)
	c.wantReads("it is sent", 1, r, 1)
	before = c.wantProgress("it is sent", true, true, before)

	c.post(Request{ID: 2, Kind: KindWrite, Remote: RemoteAddr{STag: 7}})
	require.NoError(t, c.flush())
	before = c.wantProgress("what is sent behind it is none of it", false, true, before)
	c.sends("a part of the response", tagged(OpReadResponse, false, RemoteAddr{STag: r.STag(), TO: 0x1000}, "da"))
	c.s.BatchDone()
	before = c.wantProgress("octets of it have come", true, true, before)
	c.sends("the rest", tagged(OpReadResponse, true, RemoteAddr{STag: r.STag(), TO: 0x1002}, "ta"))
	c.s.BatchDone()
	c.wantProgress("both are complete", true, false, before)
}

// TestResponseIsPending: before it is sent, and while the batch has no room for the rest.
func TestResponseIsPending(t *testing.T) {
	c := converse(t, nil)
	c.llp.mulpdu, c.llp.capacity = 114, 2
	source, _ := c.region(300, nil)
	require.False(t, c.s.Pending())
	c.sends("a Read Request", readRequestOf(1, ReadRequest{Sink: target, Size: 300, Src: RemoteAddr{source.STag(), 0x1000}}))
	require.True(t, c.s.Pending())
	_, err := c.s.Fill(c.llp)
	require.NoError(t, err)
	require.Len(t, c.llp.sent, 2)
	require.True(t, c.s.Pending())
	require.NoError(t, c.flush())
	require.Len(t, c.llp.sent, 3)
	require.False(t, c.s.Pending())
}

// TestProgressOfALongRequest that takes several batches.
func TestProgressOfALongRequest(t *testing.T) {
	c := converse(t, nil)
	c.post(Request{ID: 1, Kind: KindWrite, Remote: RemoteAddr{STag: 7}})
	before, _ := c.s.Progress()
	before = c.wantProgress("nothing happens", false, true, before)
	c.s.Flushed()
	c.wantProgress("a batch was sent", true, true, before)
}
