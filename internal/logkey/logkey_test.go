package logkey

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the table in docs/metrics.md")

const begins, ends = "<!-- table: go test ./internal/logkey -update -->\n", "<!-- end of the table -->\n"

// TestDocumentHasEachLine: docs/metrics.md has the table of the messages and their keys.
func TestDocumentHasEachLine(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "metrics.md")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := bytes.Cut(text, []byte(begins))
	require.True(t, ok)
	_, after, ok := bytes.Cut(rest, []byte(ends))
	require.True(t, ok)
	table := "| logger | level | message | keys | meaning |\n|---|---|---|---|---|\n"
	for _, l := range Lines {
		table += fmt.Sprintf("| `%s` | %s | %s | `%s` | %s |\n", l.Logger, l.Level, l.Message, strings.Join(l.Keys, "`, `"), l.Meaning)
	}
	want := string(before) + begins + table + ends + string(after)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "go test ./internal/logkey -update")
}

// library yields the source files of the library, whose log is documented, without those of programs.
func library(t *testing.T, yield func(path string, f *ast.File)) {
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{"cmd", "examples", "interop", "bench", "testdata", ".git"}, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err == nil && f.Name.Name != "main" {
			yield(path, f)
		}
		return err
	}))
}

var (
	levels     = []string{"Debug", "Info", "Warn", "Error"}
	attributes = []string{"String", "Int", "Uint64", "Time", "Bool", "Duration", "Any"}
	ofALogger  = []string{"log", "Log", "logger", "Logger"}
)

// TestKeysAreThoseOfThisPackage: each call of a logger takes its keys from here, and has a message that the document
// lists.
func TestKeysAreThoseOfThisPackage(t *testing.T) {
	known := map[string]bool{}
	for _, l := range Lines {
		known[l.Message] = true
	}
	calls := 0
	library(t, func(path string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch on := last(sel.X); {
			case on == "slog" && slices.Contains(attributes, sel.Sel.Name):
				calls++
				require.Equal(t, "logkey", ownerOf(call.Args[0]), "%s: slog.%s", path, sel.Sel.Name)
			case slices.Contains(ofALogger, on) && slices.Contains(levels, sel.Sel.Name):
				calls++
				text, err := strconv.Unquote(call.Args[0].(*ast.BasicLit).Value)
				require.NoError(t, err)
				require.True(t, known[text], "%s: %q is not in the document", path, text)
				for i := 1; i < len(call.Args); i += 2 {
					require.Equal(t, "logkey", ownerOf(call.Args[i]), "%s: %q", path, text)
				}
			}
			return true
		})
	})
	require.Greater(t, calls, 25)
}

// last returns the last name of an expression such as m.cfg.Log.
func last(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}

// ownerOf returns the package in an expression such as logkey.Peer.
func ownerOf(x ast.Expr) string {
	if sel, ok := x.(*ast.SelectorExpr); ok {
		return last(sel.X)
	}
	return ""
}
