package wire

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// octets reads hex digits, with spaces between them.
func octets(t testing.TB, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
	require.NoError(t, err)
	return b
}

// parsed parses a header, which must be valid.
func parsed(t testing.TB, b []byte) (*Header, int) {
	t.Helper()
	h := new(Header)
	n, err := h.Parse(b)
	require.NoError(t, err)
	return h, n
}
