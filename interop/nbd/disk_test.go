package nbd

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

const sectors = 64

func newDisk(seed uint64) *Disk { return NewDisk(make([]byte, sectors*Sector), seed) }

func whole(b byte) []byte { return bytes.Repeat([]byte{b}, sectors*Sector) }

// contents returns the first octet of each sector. All octets of a sector are equal.
func contents(t *testing.T, d *Disk) (values []byte) {
	p := make([]byte, d.Size())
	require.NoError(t, d.ReadAt(p, 0))
	for ; len(p) > 0; p = p[Sector:] {
		require.Equal(t, bytes.Repeat(p[:1], Sector), p[:Sector], "a sector is whole")
		values = append(values, p[0])
	}
	return values
}

func TestWhatWasNotFlushedIsLostByLot(t *testing.T) {
	d := newDisk(1)
	require.NoError(t, d.WriteAt(whole(1), 0, false))
	require.NotContains(t, contents(t, d), byte(0), "it is read as it was written")
	d.Cut()
	left := contents(t, d)
	require.Contains(t, left, byte(0), "a part is lost")
	require.Contains(t, left, byte(1), "and a part is not: a write is torn")
	d.Cut()
	require.Equal(t, left, contents(t, d), "once")
}

func TestWhatWasFlushedIsKept(t *testing.T) {
	d := newDisk(1)
	require.NoError(t, d.WriteAt(whole(1), 0, false))
	require.NoError(t, d.Flush())
	require.NoError(t, d.WriteAt(whole(2)[:Sector], Sector, true))
	require.NoError(t, d.WriteAt(whole(3)[:Sector], 0, false))
	d.Cut()
	left := contents(t, d)
	require.Contains(t, []byte{1, 3}, left[0])
	require.Equal(t, byte(2), left[1], "written through")
	require.Equal(t, whole(1)[2:sectors], left[2:])
}

func TestWrittenThroughIsTheNewest(t *testing.T) {
	d := newDisk(1)
	require.NoError(t, d.WriteAt(whole(1), 0, false))
	require.NoError(t, d.WriteAt(whole(2), 0, true))
	require.NoError(t, d.Flush())
	require.Equal(t, whole(2)[:sectors], contents(t, d), "what was in the cache before does not come back")
}

func TestAnOlderWriteMayBeWhatIsLeft(t *testing.T) {
	d := newDisk(1)
	for v := byte(1); v <= 3; v++ {
		require.NoError(t, d.WriteAt(whole(v), 0, false))
	}
	d.Cut()
	left := contents(t, d)
	for v := byte(0); v <= 3; v++ {
		require.Contains(t, left, v)
	}
}

func TestSameSeedSameLossOfOneSector(t *testing.T) {
	var left [2][]byte
	for i := range left {
		d := newDisk(7)
		for k := range int64(sectors) {
			require.NoError(t, d.WriteAt(whole(1)[:Sector], k*Sector, false))
			d.Cut()
		}
		left[i] = contents(t, d)
	}
	require.Equal(t, left[0], left[1])
}

func TestALyingDiskKeepsNothingForCertain(t *testing.T) {
	d := newDisk(1)
	d.Lie()
	require.NoError(t, d.WriteAt(whole(1), 0, true))
	require.NoError(t, d.Flush())
	d.Cut()
	require.Contains(t, contents(t, d), byte(0))
}
