package units

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "100000": 100000, "1KiB": 1 << 10, "64MiB": 64 << 20, "5GiB": 5 << 30, "2TiB": 2 << 40} {
		var s Size
		require.NoError(t, s.Set(text))
		require.Equal(t, want, s)
		require.Equal(t, text, s.String())
	}
	for _, text := range []string{"", "x", "-1", "1.5MiB", "MiB", "9999999999GiB", "9223372036854775808"} {
		require.Error(t, new(Size).Set(text), "%q", text)
	}
}
