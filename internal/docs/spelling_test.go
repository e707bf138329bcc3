package docs

import (
	"bufio"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var word = regexp.MustCompile(`[A-Za-z]+`)

// misspellings reads testdata/misspellings.txt: the correct spelling by the wrong one.
func misspellings(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "misspellings.txt"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	right := make(map[string]string)
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		w := strings.Fields(s.Text())
		require.Len(t, w, 2, s.Text())
		require.Empty(t, right[w[0]], "%s is there twice", w[0])
		right[w[0]] = w[1]
	}
	require.Greater(t, len(right), 300)
	for wrong, r := range right {
		require.Empty(t, right[r], "%s stands for %s, which is wrong as well", wrong, r)
	}
	return right
}

// misspelt lists the misspellings of a text whose first line has the number line.
func misspelt(right map[string]string, path string, line int, text string) (found []string) {
	for i, s := range strings.Split(text, "\n") {
		for _, w := range word.FindAllString(s, -1) {
			if r := right[strings.ToLower(w)]; r != "" {
				found = append(found, fmt.Sprintf("%s:%d: %s: %s", path, line+i, w, r))
			}
		}
	}
	return found
}

func TestSpellingOfDocuments(t *testing.T) {
	right := misspellings(t)
	for _, d := range everyDocument(t) {
		require.Empty(t, misspelt(right, d.path, 1, strings.Join(d.prose, "\n")))
	}
}

func TestSpellingOfComments(t *testing.T) {
	right := misspellings(t)
	files := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && e.Name() == "testdata":
			return fs.SkipDir
		case filepath.Ext(path) != ".go":
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files++
		for _, g := range f.Comments {
			require.Empty(t, misspelt(right, path, fset.Position(g.Pos()).Line, g.Text()))
		}
		return nil
	}))
	require.Greater(t, files, 500)
}

func TestMisspellingsAreFound(t *testing.T) {
	require.Equal(t, []string{"a.md:2: Rec" + "ieve: receive"}, misspelt(misspellings(t), "a.md", 1, "Receive\nRec"+"ieve it."))
}
