package arch

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/arch/measure"
)

// unfinished matches the marks of unfinished work.
var unfinished = regexp.MustCompile(`\b(TODO|FIXME)\b`)

// checkHouse checks one file against the rules of the house.
func checkHouse(f *measure.File) []string {
	var wrong []string
	if n := f.Lines(); n > maxLines {
		wrong = append(wrong, fmt.Sprintf("%s: %d lines, more than %d", f.Path, n, maxLines))
	}
	for _, g := range f.AST.Comments {
		if m := unfinished.FindString(g.Text()); m != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s in a comment", f.Path, m))
		}
	}
	return wrong
}

// testName begins the comment of a test, or of a fuzz target.
var testName = regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]*`)

// checkTestNames finds tests whose comments name another test: they were not adapted when the test was renamed or moved.
func checkTestNames(f *measure.File) []string {
	var wrong []string
	for _, d := range f.AST.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if named := testName.FindString(fn.Doc.Text()); named != "" && named != fn.Name.Name {
			wrong = append(wrong, fmt.Sprintf("%s: the comment of %s names %s", f.Path, fn.Name.Name, named))
		}
	}
	return wrong
}

// checkCore finds IO, goroutines and clocks in the protocol cores.
func checkCore(f *measure.File) []string {
	except, core := cores[f.Package()]
	if !core || f.IsTest() {
		return nil
	}
	if slices.ContainsFunc(strings.Fields(except), func(pattern string) bool {
		ok, _ := path.Match(pattern, path.Base(f.Path))
		return ok
	}) {
		return nil
	}
	var wrong []string
	for _, imp := range f.Imports() {
		if under(imp, ioPackages) {
			wrong = append(wrong, fmt.Sprintf("%s: a core imports %s", f.Path, imp))
		}
	}
	clock := f.LocalName("time")
	ast.Inspect(f.AST, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			wrong = append(wrong, fmt.Sprintf("%s: a core starts a goroutine", f.Path))
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && clock != "" && x.Name == clock && slices.Contains(clockFuncs, n.Sel.Name) {
				wrong = append(wrong, fmt.Sprintf("%s: a core uses time.%s", f.Path, n.Sel.Name))
			}
		}
		return true
	})
	return wrong
}

func TestHouseRules(t *testing.T) {
	var wrong []string
	for _, f := range tree(t) {
		wrong = append(wrong, checkHouse(f)...)
		wrong = append(wrong, checkCore(f)...)
		wrong = append(wrong, checkTestNames(f)...)
	}
	require.Empty(t, wrong, "see CONTRIBUTING.md, How the code is arranged")
}

func TestHouseRulesCanFail(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"a.go", "package iwarp\n" + strings.Repeat("\n", maxLines), "601 lines"},
		{"a.go", "package iwarp\n\n// TODO: later.\n", "TODO in a comment"},
		{"ddp/a.go", `package ddp; import _ "net"`, "a core imports net"},
		{"mpa/frame.go", `package mpa; import _ "net/netip"`, "a core imports net/netip"},
		{"stag/a.go", `package stag; func f() { go f() }`, "starts a goroutine"},
		{"rdmap/a.go", `package rdmap; import "time"; var t = time.Now`, "uses time.Now"},
		{"rdmap/a.go", `package rdmap; import clk "time"; func f() { clk.Sleep(1) }`, "uses time.Sleep"},
		{"a_test.go", "package iwarp\n\n// TestA of something.\nfunc TestB() {}\n", "the comment of TestB names TestA"},
	} {
		f := parse(t, c.name, c.src)
		wrong := slices.Concat(checkHouse(f), checkCore(f), checkTestNames(f))
		require.Len(t, wrong, 1, c.src)
		require.Contains(t, wrong[0], c.want)
	}
}

func TestHouseRulesLetTheRightOnesPass(t *testing.T) {
	for _, c := range []struct{ name, src string }{
		{"mpa/conn_read.go", `package mpa; import "net"; import "time"; var a net.Conn; var t = time.Now`},
		{"rdmap/a.go", `package rdmap; import "time"; func f(now time.Time, d time.Duration) {}`},
		{"rdmap/a_test.go", `package rdmap; func f() { go f() }`},
		{"transport/a.go", `package transport; import _ "net"; func f() { go f() }`},
		{"a_test.go", "package iwarp\n\n// TestA of something.\nfunc TestA() {}\n\n// Tests have helpers.\nfunc f() {}\n"},
	} {
		f := parse(t, c.name, c.src)
		require.Empty(t, slices.Concat(checkHouse(f), checkCore(f), checkTestNames(f)), c.src)
	}
}
