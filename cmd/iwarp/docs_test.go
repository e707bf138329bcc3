package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// documented finds calls of iwarp in documents: in code, up to its end or a comment.
var documented = regexp.MustCompile("(?m)(?:`|^ *|^)(?:go run (?:\\./cmd/iwarp|github\\.com/goiwarp/iwarp/cmd/iwarp@latest)|iwarp) ((?:[a-z]+)(?: [^`#\n]*)?)")

// TestDocumentsCallTheCommandsThatThereAre, with flags that they have.
func TestDocumentsCallTheCommandsThatThereAre(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	require.NoError(t, err)
	calls := 0
	for _, file := range append(files, filepath.Join("..", "..", "README.md"), filepath.Join("..", "..", "CHANGELOG.md"), filepath.Join("..", "..", "CONTRIBUTING.md")) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range documented.FindAllStringSubmatch(string(text), -1) {
			args := strings.Fields(strings.ReplaceAll(m[1], "'", ""))
			root := rootCommand()
			root.InitDefaultHelpCmd()
			root.InitDefaultCompletionCmd(args...)
			cmd, rest, err := root.Find(args)
			require.NoError(t, err, "%s: %q", file, m[0])
			if cmd == root {
				require.NotContains(t, m[0], "go run", "%s: no such command", file)
				continue // a sentence that begins with the name
			}
			cmd.InitDefaultHelpFlag()
			require.NoError(t, cmd.ParseFlags(rest), "%s: %q", file, m[0])
			calls++
		}
	}
	require.Greater(t, calls, 40)
}
