package iwarp_test

import (
	"errors"
	"math"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

func TestSliceOfARemoteBuffer(t *testing.T) {
	rb := iwarp.RemoteBuffer{STag: 7, TO: 1000, Len: 100}
	for _, c := range []struct {
		off, n int
		want   iwarp.RemoteBuffer
	}{
		{0, 100, rb},
		{10, 20, iwarp.RemoteBuffer{STag: 7, TO: 1010, Len: 20}},
		{99, 1, iwarp.RemoteBuffer{STag: 7, TO: 1099, Len: 1}},
		{100, 0, iwarp.RemoteBuffer{STag: 7, TO: 1100}},
		{101, 0, iwarp.RemoteBuffer{}},
		{99, 2, iwarp.RemoteBuffer{}},
		{0, 101, iwarp.RemoteBuffer{}},
		{-1, 1, iwarp.RemoteBuffer{}},
		{1, -1, iwarp.RemoteBuffer{}},
		{math.MaxInt, math.MaxInt, iwarp.RemoteBuffer{}},
		{math.MinInt, math.MinInt, iwarp.RemoteBuffer{}},
	} {
		require.Equal(t, c.want, rb.Slice(c.off, c.n), "%+v", c)
	}
	require.Equal(t, iwarp.RemoteBuffer{STag: 7, TO: 1015, Len: 3}, rb.Slice(10, 20).Slice(5, 3), "of a slice")
	require.Zero(t, rb.Slice(10, 20).Slice(5, 16), "which is no way to more")
}

// TestSliceOutOfRangeMovesNothing: an operation that moves octets refuses the zero RemoteBuffer.
func TestSliceOutOfRangeMovesNothing(t *testing.T) {
	client, server := connect(t, pairConfig{network: "pipe"})
	_, cm := client.register(8, stag.LocalWrite, nil)
	_, sm := server.register(8, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
	out := sm.Advertise(0, 8).Slice(4, 5)
	ctx := testContext(t)
	require.ErrorIs(t, client.qp.RDMAWrite(ctx, out, cm.Slice(0, 5)), iwarp.ErrBounds)
	require.ErrorIs(t, client.qp.RDMARead(ctx, cm.Slice(0, 5), out), iwarp.ErrBounds)
	require.Equal(t, iwarp.StateRTS, client.qp.State())
}

// A vastBuffer has any number of octets, none of them in memory, and records where it is written.
type vastBuffer struct {
	size int64

	mu      sync.Mutex
	written []int64
}

func (b *vastBuffer) Size() int64 { return b.size }

func (b *vastBuffer) ReadAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }

func (b *vastBuffer) WriteAt(p []byte, off int64) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.written = append(b.written, off)
	return len(p), nil
}

// TestAdvertiseRangeLosesNoLength: the region is a little larger than 64 GiB, and the peer reaches all of it.
func TestAdvertiseRangeLosesNoLength(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("an int is too small for such a length")
	}
	client, server := connect(t, pairConfig{network: "pipe"})
	const gib = int64(1) << 30
	vast := &vastBuffer{size: 64*gib + 5}
	mr, err := server.pd.RegisterBuffer(vast, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{BaseTO: 1 << 40})
	require.NoError(t, err)
	all := int(vast.size)
	require.Zero(t, mr.Advertise(0, all), "one RemoteBuffer cannot say that")
	most := 4*gib - 1
	require.EqualValues(t, most, mr.Advertise(0, int(most)).Len, "but as much as this")
	pieces, err := mr.AdvertiseRange(0, all)
	require.NoError(t, err)
	require.Len(t, pieces, 33)
	var sum uint64
	for _, rb := range pieces {
		require.Equal(t, mr.STag(), rb.STag)
		require.Equal(t, 1<<40+sum, rb.TO, "one after the other")
		sum += uint64(rb.Len)
	}
	require.EqualValues(t, all, sum)
	require.EqualValues(t, 5, pieces[32].Len, "only the last is shorter")

	ctx := testContext(t)
	_, src := client.register(4, 0, nil)
	require.NoError(t, client.qp.RDMAWrite(ctx, pieces[32].Slice(1, 4), src.Slice(0, 4)))
	require.NoError(t, client.qp.RDMARead(ctx, iwarp.SGE{}, iwarp.RemoteBuffer{}), "there and back")
	vast.mu.Lock()
	require.Equal(t, []int64{64*gib + 1}, vast.written)
	vast.mu.Unlock()

	for _, c := range []struct {
		off, n int64
		pieces int
	}{
		{0, 0, 1},
		{vast.size, 0, 1},
		{0, 1, 1},
		{vast.size - 1, 1, 1},
		{0, iwarp.AdvertisePiece, 1},
		{3, iwarp.AdvertisePiece + 1, 2},
		{0, 2 * iwarp.AdvertisePiece, 2},
	} {
		got, err := mr.AdvertiseRange(int(c.off), int(c.n))
		require.NoError(t, err)
		require.Len(t, got, c.pieces, "%+v", c)
		require.EqualValues(t, 1<<40+uint64(c.off), got[0].TO)
	}
	for _, c := range []struct{ off, n int }{{0, all + 1}, {all, 1}, {-1, 1}, {1, -1}, {math.MaxInt, math.MaxInt}} {
		got, err := mr.AdvertiseRange(c.off, c.n)
		require.ErrorIs(t, err, iwarp.ErrBounds, "%+v", c)
		require.Nil(t, got)
	}

	mw, err := server.pd.AllocMW()
	require.NoError(t, err)
	_, err = mw.AdvertiseRange(0, 1)
	require.ErrorIs(t, err, iwarp.ErrBounds, "a window that is not bound has no octets")
	got, err := mw.AdvertiseRange(0, 0)
	require.NoError(t, err)
	require.Len(t, got, 1)
}
