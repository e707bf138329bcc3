// Package captures contains messages of Linux and of an NFS server, for tests.
package captures

import (
	_ "embed"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed headers.txt
var headers string

// Headers returns the messages by name: each with its RPC message, or the beginning of it.
func Headers(t testing.TB) map[string][]byte {
	t.Helper()
	found, what := make(map[string][]byte), ""
	for line := range strings.Lines(headers) {
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
