package tracing

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
)

// TestDocumentHasEachName: docs/metrics.md lists the attributes of this package, and the classes of errors.
func TestDocumentHasEachName(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "metrics.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## Traces\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	for _, key := range []attribute.Key{
		keyPath, keyPeer, keyStage, keyOctets, keyRequests, keyLayer, keyType, keyCode, keyRemote, keyCommit, keyRegion, keyOffset, keyReason,
	} {
		require.Contains(t, section, "`"+string(key)+"`")
	}
	for _, c := range classes {
		require.Contains(t, section, "`"+c.name+"`")
	}
}
