package iwarp_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadmeShowsTheExample(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, body, found := strings.Cut(string(source), "func Example() {\n")
	require.True(t, found)
	body, _, found = strings.Cut(body, "\t// Output:")
	require.True(t, found)
	var want strings.Builder
	for line := range strings.Lines(body) {
		want.WriteString(strings.TrimPrefix(line, "\t"))
	}
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), "```go\n"+want.String()+"```\n", "README.md shows Example of example_test.go word for word")
}
