package marks

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMarks(t *testing.T) {
	var l List
	l.Most("few", 1, 1, " us")
	l.Least("many", 50, 50)
	require.False(t, l.Missed())
	l.Least("more", 49, 50)
	require.True(t, l.Missed())
	var out bytes.Buffer
	require.NoError(t, l.Print(&out))
	require.Contains(t, out.String(), "1.00 us   <= 1.00 us  yes")
	require.Contains(t, out.String(), "49.00     >= 50.00    NO")
}
