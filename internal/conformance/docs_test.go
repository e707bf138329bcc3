package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// namedTest matches a test that a document names, in code quotes, with or without its package.
var namedTest = regexp.MustCompile("`(?:([a-z0-9/]+)\\.)?((?:Test|Fuzz)[A-Z][A-Za-z0-9_]*)`")

// TestDocumentsNameTestsThatExist reads all documents of docs. A name without a package may belong to any package.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	packages := functionsOfTests(t, root)
	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	records, err := filepath.Glob(filepath.Join(root, "docs", "adr", "*.md"))
	require.NoError(t, err)
	named := 0
	for _, file := range append(documents, records...) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range namedTest.FindAllStringSubmatch(string(text), -1) {
			named++
			require.True(t, slices.ContainsFunc(packages[m[2]], func(p string) bool { return m[1] == "" || m[1] == p }),
				"%s names %s, which is in the packages %q", file, m[0], packages[m[2]])
		}
	}
	require.Greater(t, named, 20, "docs/security.md alone names more")
}

// functionsOfTests returns the functions in test files, each with the packages that have a function of that name.
func functionsOfTests(t *testing.T, root string) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	require.NoError(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(p))
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				found[fn.Name.Name] = append(found[fn.Name.Name], packageName(filepath.ToSlash(dir)))
			}
		}
		return nil
	}))
	return found
}
