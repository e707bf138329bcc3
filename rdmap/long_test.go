package rdmap

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

// A longBuffer is a stag.Buffer of zeros.
type longBuffer struct{ size int64 }

func (b *longBuffer) Size() int64 { return b.size }

func (b *longBuffer) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

func (b *longBuffer) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// TestReadOfMoreThanAnIntCounts is answered on systems with 32 bits, too (GOARCH=386).
func TestReadOfMoreThanAnIntCounts(t *testing.T) {
	for _, size := range []uint32{math.MaxInt32, math.MaxInt32 + 1, math.MaxUint32} {
		for _, base := range []uint64{0, 1 << 62} {
			c := converse(t, nil)
			c.llp.capacity = 2
			r, err := c.table.RegisterBuffer(&longBuffer{size: math.MaxUint32}, stag.Options{Access: stag.RemoteRead, Scope: alice, BaseTO: base})
			require.NoError(t, err)
			c.sends("a request", readRequestOf(1, ReadRequest{Sink: target, Size: size, Src: RemoteAddr{r.STag(), base}}))
			for range 2 { // the second time the source is found at another place
				more, err := c.s.Fill(c.llp)
				require.NoError(t, err)
				require.True(t, more)
				require.NoError(t, c.s.Flush(c.llp))
				c.s.Flushed()
			}
			require.EqualValues(t, size, stag.TotalLen(c.s.fill.out.Source))
			require.Positive(t, c.s.fill.out.Sent())
			require.Less(t, c.s.fill.out.Sent(), uint64(size))
			c.s.End()
		}
	}
}

func TestSpansOfAResponse(t *testing.T) {
	for n, want := range map[uint32][]int{
		0: nil, 1: {1}, math.MaxInt32: {math.MaxInt32}, math.MaxInt32 + 1: {math.MaxInt32, 1}, math.MaxUint32: {math.MaxInt32, math.MaxInt32, 1},
	} {
		var room [3]stag.Span
		var got []int
		at := uint64(7)
		for _, s := range spansOf(room[:0], nil, at, n) {
			require.Equal(t, at, s.Off, "one begins where the other ends")
			at += uint64(s.Len)
			got = append(got, s.Len)
		}
		require.Equal(t, want, got)
	}
}
