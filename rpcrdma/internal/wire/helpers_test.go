package wire

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// captured reads the messages of a file of testdata, by what they are.
func captured(t testing.TB, file string) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	found, what := make(map[string][]byte), ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "# "); ok {
			what = title
			continue
		}
		b, err := hex.DecodeString(line)
		require.NoError(t, err, what)
		found[what] = b
	}
	return found
}

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
