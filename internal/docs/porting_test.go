package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var column = regexp.MustCompile(`  +`)

// ourNames lists the names in the left column of the table of names in the package comment of the root package.
func ourNames(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "doc.go"))
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(text), "// # Names in libibverbs and librdmacm\n")
	require.True(t, ok)
	table, _, ok = strings.Cut(table, "\n// # ")
	require.True(t, ok)
	for line := range strings.SplitSeq(table, "\n") {
		row, ok := strings.CutPrefix(line, "//\t")
		if cells := column.Split(row, 2); ok && len(cells) == 2 {
			names = append(names, strings.Split(cells[0], ", ")...)
		}
	}
	return names
}

// TestPortingHasEveryVerb: the verbs in the headers of rdma-core 44.0, with the members that a program fills in, and
// everything that the package comment compares with them.
func TestPortingHasEveryVerb(t *testing.T) {
	text := page(t, "docs/porting-libibverbs.md")
	for _, file := range []string{"verbs.txt", "enums.txt", "members.txt"} {
		list, err := os.ReadFile(filepath.Join("testdata", file))
		require.NoError(t, err)
		names := strings.Fields(string(list))
		require.Greater(t, len(names), 45)
		for _, name := range names {
			require.Contains(t, text, "`"+name+"`", file)
		}
	}
	ours := ourNames(t)
	require.Greater(t, len(ours), 40)
	for _, name := range ours {
		require.Contains(t, text, "`"+name+"`", "doc.go")
	}
}
