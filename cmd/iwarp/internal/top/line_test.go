package top

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLongTextsLoseTheirMiddle: an address keeps its beginning and its port.
func TestLongTextsLoseTheirMiddle(t *testing.T) {
	const address = "[2001:db8::1234:5678]:40000"
	require.Equal(t, "[2001:db8..678]:40000", left(address, 21))
	for width := range 40 {
		short := left(address, width)
		require.Len(t, short, width)
		if width >= 4 && width < len(address) {
			begins, ends, cut := strings.Cut(short, cutMark)
			require.True(t, cut)
			require.True(t, strings.HasPrefix(address, begins) && strings.HasSuffix(address, ends), short)
		}
	}
	require.Equal(t, "a?b   ", left("a\tb", 6), "the width is that of what is shown")
	require.Equal(t, "   a?b", right("a\u009bb", 6))
}

// TestNumbersFitTheirColumns, durations up to 100 s.
func TestNumbersFitTheirColumns(t *testing.T) {
	for n := 1.0; n < 1e19; n *= 1.37 {
		require.LessOrEqual(t, len(octets(n)), 6)
		require.LessOrEqual(t, len(count(n)), 5)
		require.LessOrEqual(t, len(exact(uint64(n))), 6)
		if n < 1e7 {
			require.LessOrEqual(t, len(depth(int(n))), 5)
		}
		if n < 1e11 {
			require.LessOrEqual(t, len(brief(time.Duration(n))), 6)
		}
	}
	require.Equal(t, []string{"0", "9999", "10k", "65k"}, []string{depth(0), depth(9999), depth(10_000), depth(65_535)})
	require.Equal(t, []string{"-", "12.3us"}, []string{brief(0), brief(12300)})
}
