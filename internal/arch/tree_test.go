package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/goiwarp/iwarp"

// A file is one Go source file of the module, whatever its build tags.
type file struct {
	path string // below the module, with slashes
	src  string
	ast  *ast.File
}

// pkg is the directory of the file below the module, "." for the root.
func (f *file) pkg() string { return path.Dir(f.path) }

func (f *file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// imports lists the import paths.
func (f *file) imports() []string {
	var ps []string
	for _, s := range f.ast.Imports {
		p, _ := strconv.Unquote(s.Path.Value) // the parser has checked it
		ps = append(ps, p)
	}
	return ps
}

// localName is the name that an import has in the file, "" if it is not imported.
func (f *file) localName(importPath string) string {
	for _, s := range f.ast.Imports {
		if s.Path.Value != strconv.Quote(importPath) {
			continue
		}
		if s.Name != nil {
			return s.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

func parse(t *testing.T, name, src string) *file {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	return &file{path: name, src: src, ast: f}
}

// tree reads all Go files of the module.
func tree(t *testing.T) []*file {
	t.Helper()
	root := filepath.Join("..", "..")
	var files []*file
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); p != root && (name == "testdata" || name[0] == '.' || name[0] == '_') {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(p) != ".go" {
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		files = append(files, parse(t, filepath.ToSlash(rel), string(src)))
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// under tells whether a package path is one of dirs or below one.
func under(p string, dirs []string) bool {
	for _, d := range dirs {
		if p == d || strings.HasPrefix(p, d+"/") {
			return true
		}
	}
	return false
}
