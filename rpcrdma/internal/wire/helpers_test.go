package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/octettest"
)

var octets = octettest.Hex

// parsed parses a header, which must be valid.
func parsed(t testing.TB, b []byte) (*Header, int) {
	t.Helper()
	h := new(Header)
	n, err := h.Parse(b)
	require.NoError(t, err)
	return h, n
}
