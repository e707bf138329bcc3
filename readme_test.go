package iwarp_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadmeShowsTheExample: README.md contains the file example_test.go as a program.
func TestReadmeShowsTheExample(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	program := regexp.MustCompile(`(?m)^// .*\n|^\t// Output:.*\n`).ReplaceAllString(string(source), "")
	program = strings.Replace(program, "package iwarp_test", "package main", 1)
	program = strings.Replace(program, "func Example()", "func main()", 1)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), "```go\n"+program+"```\n", "README.md shows example_test.go word for word")
}
