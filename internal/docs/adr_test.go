package docs

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEachDecisionIsListed: the list has each one with its title.
func TestEachDecisionIsListed(t *testing.T) {
	list := page(t, "docs/adr/README.md")
	found := 0
	for _, d := range everyDocument(t) {
		name := path.Base(d.path)
		if path.Dir(d.path) != "docs/adr" || name == "README.md" {
			continue
		}
		number, title, _ := strings.Cut(strings.TrimPrefix(d.prose[0], "# "), ": ")
		require.Contains(t, list, fmt.Sprintf("| [%s](%s) | %s | ", number, name, title))
		found++
	}
	require.Equal(t, strings.Count(list, "\n| [0"), found, "docs/adr/README.md lists each decision once")
}
