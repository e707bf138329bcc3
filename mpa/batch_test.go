package mpa

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBatchIsFullExactlyAtItsLimits: in octets, and in pieces that are not sent yet.
func TestBatchIsFullExactlyAtItsLimits(t *testing.T) {
	b := &batch{}
	require.True(t, b.fits(1<<20, 9999, 10), "an empty one takes any")
	for range 4 {
		b.lend(make([]byte, 10))
	}
	require.True(t, b.fits(60, 1, 100))
	require.False(t, b.fits(61, 1, 100))
	require.True(t, b.fits(1, batchPieces-4, 100))
	require.False(t, b.fits(1, batchPieces-3, 100))
	b.drop(25)
	require.True(t, b.fits(1, batchPieces-2, 100), "two are out, and the third is cut")
	require.False(t, b.fits(1, batchPieces-1, 100))
	require.Equal(t, []int{5, 10}, []int{len(b.pending()[0]), len(b.pending()[1])})
	require.Equal(t, [][]byte{nil, nil}, b.pieces[:2], "and what is out is forgotten")
}

// TestSplitsIsOfTheFPDUThatIsAskedAbout: the network is full, and a Terminate replaces the FPDU that did not
// fit.
func TestSplitsIsOfTheFPDUThatIsAskedAbout(t *testing.T) {
	b := &batch{emss: 100}
	b.lend(make([]byte, 50))
	require.True(t, b.splits(146), "octets 198 to 201 are its CRC")
	require.True(t, b.splits(46), "octets 98 to 101")
	require.False(t, b.splits(42), "octets 94 to 97")
	require.True(t, b.splits(146))
}

// TestKeepCopiesWhatIsLentAndNotOutYet, however much of the batch has been sent.
func TestKeepCopiesWhatIsLentAndNotOutYet(t *testing.T) {
	for out := range 60 {
		b := &batch{}
		var want []byte
		var lent [][]byte
		for i := range byte(4) {
			own := bytes.Repeat([]byte{0x10 + i}, 5)
			b.take(own)
			p := bytes.Repeat([]byte{0x20 + i}, 10)
			b.lend(p)
			lent = append(lent, p)
			want = append(append(want, own...), p...)
		}
		b.drop(out)
		b.stage()
		require.Equal(t, 60, b.bytes)
		for _, p := range lent {
			clear(p) // they are the caller's again
		}
		require.Equal(t, want[out:], bytes.Join(b.pending(), nil), "%d octets are out", out)
		require.Empty(t, b.loans)

		before := b.pieces
		b.stage()
		require.Equal(t, want[out:], bytes.Join(b.pending(), nil), "there is nothing left to copy")
		require.Equal(t, len(before), len(b.pieces))
		b.take([]byte("more"))
		p := []byte("lent")
		b.lend(p)
		b.stage()
		clear(p)
		require.Equal(t, string(want[out:])+"morelent", string(bytes.Join(b.pending(), nil)))
		b.release()
	}
}
