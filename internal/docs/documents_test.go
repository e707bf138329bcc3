package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// A block is one fenced block of a document.
type block struct {
	line int    // of the first line of its text
	info string // after the fence
	text string
}

// A document is a file *.md, split into parts.
type document struct {
	path   string // below the root, with slashes
	prose  []string
	blocks []block
}

// parse splits a document into blocks and prose. In the prose, the lines of blocks are empty, so that lines keep their
// numbers.
func parse(path, text string) document {
	d := document{path: path}
	var b *block
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && b == nil:
			b = &block{line: i + 2, info: strings.TrimSpace(fence)}
			line = ""
		case isFence:
			d.blocks = append(d.blocks, *b)
			b, line = nil, ""
		case b != nil:
			b.text += line + "\n"
			line = ""
		}
		d.prose = append(d.prose, line)
	}
	return d
}

// documents reads all documents of the module once.
var documents = sync.OnceValues(func() ([]document, error) {
	var all []document
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := e.Name()
		if e.IsDir() && (name == "testdata" || name != "." && name != ".." && strings.HasPrefix(name, ".")) {
			return fs.SkipDir
		}
		if e.IsDir() || filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, path)
		all = append(all, parse(filepath.ToSlash(below), string(text)))
		return err
	})
	return all, err
})

func everyDocument(t *testing.T) []document {
	t.Helper()
	all, err := documents()
	require.NoError(t, err)
	require.Greater(t, len(all), 30)
	return all
}

// page returns the prose of one document.
func page(t *testing.T, path string) string {
	t.Helper()
	for _, d := range everyDocument(t) {
		if d.path == path {
			return strings.Join(d.prose, "\n")
		}
	}
	t.Fatalf("%s: no such document", path)
	return ""
}
