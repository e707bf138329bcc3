package nfsclient

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsPutTogetherIsTakenApart(t *testing.T) {
	for n := range 9 {
		var m message
		m.word(7, 0)
		m.long(1<<63 | 5)
		m.opaque(pattern(n))
		m.word(1)
		m = append(m, make([]byte, attributesLen)...)
		require.Zero(t, len(m)%4)

		r := reader{b: m}
		require.Equal(t, uint32(7), r.word())
		r.optional(attributesLen)
		require.Equal(t, uint64(1<<63|5), r.long())
		require.Equal(t, pattern(n), r.opaque())
		r.optional(attributesLen)
		require.NoError(t, r.err)
		require.Empty(t, r.b)

		for end := range len(m) {
			r := reader{b: m[:end]}
			r.take(16)
			r.opaque()
			r.optional(attributesLen)
			require.Error(t, r.err, "cut after %d octets", end)
			require.Nil(t, r.take(0), "nothing is taken behind an error")
		}
	}
}

func TestLengthsThatCannotBe(t *testing.T) {
	var m message
	m.word(1 << 31)
	r := reader{b: m}
	require.Nil(t, r.opaque())
	require.Error(t, r.err)
}
