package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/mutate/list"
)

var root = filepath.Join("..", "..", "..")

func TestDocumentIsFresh(t *testing.T) {
	got, err := os.ReadFile(filepath.Join(root, reportFile))
	require.NoError(t, err)
	require.Equal(t, string(report()), string(got), "stale: run go run ./internal/hostile/table")
}

// rows returns the rows of all groups.
func rows() (all []attack) {
	for _, g := range groups() {
		all = append(all, g.attacks...)
	}
	return all
}

func TestRowsAreWhole(t *testing.T) {
	seen := make(map[string]bool)
	for _, a := range rows() {
		require.Regexp(t, `^ATK-\d+$`, a.id)
		require.False(t, seen[a.id], "%s is there twice", a.id)
		seen[a.id] = true
		for _, cell := range []string{a.what, a.tries, a.outcome} {
			require.NotEmpty(t, cell, a.id)
			require.NotContains(t, a.what+a.source+a.tries+a.outcome, "|", a.id)
		}
		require.NotEmpty(t, a.tests, a.id)
		require.NotEmpty(t, a.through, a.id)
	}
}

func TestEverySectionIsThere(t *testing.T) {
	var sources []string
	for _, a := range rows() {
		sources = append(sources, strings.Split(a.source, ", ")...)
	}
	for section := range strings.FieldsSeq(`5.1.1 5.1.2 5.1.3 5.2 5.3 6.1.1 6.2.1 6.2.2 6.2.3 6.3.1 6.3.2 6.3.3 6.3.4 6.3.5 6.3.6
		6.4.1 6.4.2 6.4.3.1 6.4.3.2 6.4.3.3 6.4.4 6.4.5 6.4.6 6.5 7.1 7.2 7.3`) {
		require.Contains(t, sources, section)
	}
}

// testsOf returns the tests of one package.
func testsOf(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*_test.go"))
	require.NoError(t, err)
	found := make(map[string]bool)
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				found[fn.Name.Name] = true
			}
		}
	}
	return found
}

func TestNamedTestsExist(t *testing.T) {
	packages := make(map[string]map[string]bool)
	for _, a := range rows() {
		for _, name := range a.tests {
			pkg, test := path.Split(name)
			dir, test, ok := strings.Cut(test, ".")
			require.True(t, ok, name)
			pkg += dir
			if pkg == "iwarp" {
				pkg = "."
			}
			if packages[pkg] == nil {
				packages[pkg] = testsOf(t, pkg)
			}
			require.True(t, packages[pkg][test], "%s names %s, which does not exist", a.id, name)
		}
	}
}

// TestNamedDefectsExist: each defect belongs to a test of its row, and each defect of the series ATK is in its row.
func TestNamedDefectsExist(t *testing.T) {
	l, err := list.Load()
	require.NoError(t, err)
	defects := make(map[string]list.Mutation)
	unnamed := make(map[string]bool)
	for _, m := range l.Mutations {
		defects[m.ID] = m
		if strings.HasPrefix(m.ID, "ATK-") {
			unnamed[m.ID] = true
		}
	}
	for _, a := range rows() {
		for _, id := range a.through {
			m, ok := defects[id]
			require.True(t, ok, "%s names %s, which does not exist", a.id, id)
			require.True(t, slices.Contains(a.tests, m.Target()), "%s names %s, which is a defect of %s", a.id, id, m.Target())
			if unnamed[id] {
				require.Equal(t, a.id, m.Requirement(), "a defect of the series ATK has the number of its row")
				delete(unnamed, id)
			}
		}
	}
	require.Empty(t, slices.Collect(maps.Keys(unnamed)), "each defect of the series ATK is in its row")
}
