package arch

import (
	"fmt"
	"go/ast"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/arch/measure"
)

// checkImports checks one file against the table and returns what is wrong.
func checkImports(f *measure.File) []string {
	pkg := f.Package()
	wrong := checkTestOnly(f)
	if under(pkg, programs) {
		return wrong
	}
	r, ok := table[pkg]
	if !ok && under(pkg, []string{"internal"}) {
		r, ok = table["internal"]
	}
	if !ok {
		return []string{fmt.Sprintf("%s: package %s is not in the table", f.Path, pkg)}
	}
	for _, imp := range f.Imports() {
		if !allowed(f, r, imp) {
			wrong = append(wrong, mayNot(f, imp))
		}
	}
	return wrong
}

func mayNot(f *measure.File, imp string) string {
	return fmt.Sprintf("%s: may not import %s", f.Path, imp)
}

// checkTestOnly finds imports of test packages outside of tests.
func checkTestOnly(f *measure.File) []string {
	var wrong []string
	for _, imp := range f.Imports() {
		of, ours := strings.CutPrefix(imp, module+"/")
		if ours && !f.IsTest() && under(of, testOnly) && !under(f.Package(), testOnly) {
			wrong = append(wrong, mayNot(f, imp))
		}
	}
	return wrong
}

// allowed reports whether the file may import the path under its rule.
func allowed(f *measure.File, r rule, imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	if !strings.Contains(first, ".") {
		return true // the standard library
	}
	if imp != module && !strings.HasPrefix(imp, module+"/") {
		return under(imp, r.third) || f.IsTest() && under(imp, testLibraries)
	}
	of := strings.TrimPrefix(strings.TrimPrefix(imp, module), "/")
	if of == "" {
		of = "."
	}
	// A package's own external tests import it.
	return under(of, r.ours) || f.IsTest() && (of == f.Package() || under(of, r.tests))
}

// checkContract finds uses of package transport beyond the contract.
func checkContract(f *measure.File, contract map[string]bool) []string {
	if f.IsTest() || !slices.Contains(contractOnly, f.Package()) {
		return nil
	}
	name := f.LocalName(module + "/transport")
	var wrong []string
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && name != "" {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == name && !contract[sel.Sel.Name] {
				wrong = append(wrong, fmt.Sprintf("%s: transport.%s is not in the contract", f.Path, sel.Sel.Name))
			}
		}
		return true
	})
	return wrong
}

// contractNames lists the exported names of the contract.
func contractNames(files []*measure.File) map[string]bool {
	names := make(map[string]bool)
	for _, f := range files {
		if f.Package() == "transport" && slices.Contains(contractFiles, path.Base(f.Path)) {
			for _, d := range f.AST.Decls {
				for _, n := range declared(d) {
					names[n] = true
				}
			}
		}
	}
	return names
}

// declared lists the names that a declaration adds to its package.
func declared(d ast.Decl) []string {
	var names []string
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}

func TestARCH_42_CM_43_ImportsFollowTheTable(t *testing.T) {
	files := tree(t)
	contract := contractNames(files)
	require.Contains(t, contract, "LLP")
	var wrong []string
	for _, f := range files {
		wrong = append(wrong, checkImports(f)...)
		wrong = append(wrong, checkContract(f, contract)...)
	}
	require.Empty(t, wrong, "see table_test.go")
}

func TestEveryRowOfTheTableExists(t *testing.T) {
	seen := map[string]bool{"internal": true}
	for _, f := range tree(t) {
		seen[f.Package()] = true
	}
	for name := range table {
		require.True(t, seen[name], "the table has a row for %q, which does not exist", name)
	}
}

func TestImportRulesCanFail(t *testing.T) {
	contract := map[string]bool{"LLP": true}
	for _, c := range []struct{ name, src, want string }{
		{"ddp/a.go", `package ddp; import _ "github.com/goiwarp/iwarp/mpa"`, "may not import"},
		{"ddp/a_test.go", `package ddp; import _ "github.com/goiwarp/iwarp/mpa"`, "may not import"},
		{"stag/a.go", `package stag; import _ "github.com/goiwarp/iwarp/transport"`, "may not import"},
		{"transport/a.go", `package transport; import _ "github.com/goiwarp/iwarp"`, "may not import"},
		{"mpa/a.go", `package mpa; import _ "github.com/goiwarp/iwarp/stag"`, "may not import"},
		{"internal/x/a.go", `package x; import _ "github.com/goiwarp/iwarp/stag"`, "may not import"},
		{"internal/x/a.go", `package x; import _ "github.com/goiwarp/iwarp/internal/y"`, "may not import"},
		{"rdmap/a.go", `package rdmap; import _ "golang.org/x/sys/unix"`, "may not import"},
		{"rdmap/a.go", `package rdmap; import _ "github.com/stretchr/testify/require"`, "may not import"},
		{"rdmap/a_test.go", `package rdmap; import _ "github.com/spf13/cobra"`, "may not import"},
		{"a.go", `package iwarp; import _ "github.com/prometheus/client_golang/prometheus"`, "may not import"},
		{"a.go", `package iwarp; import _ "github.com/goiwarp/iwarp/examples/filecopy"`, "may not import"},
		{"a.go", `package iwarp; import _ "github.com/goiwarp/iwarp/internal/wiretest"`, "may not import"},
		{"cmd/iwarp/a.go", `package main; import _ "github.com/goiwarp/iwarp/internal/wiretest"`, "may not import"},
		{"verbs/a.go", `package verbs`, "not in the table"},
		{"ddp/a.go", `package ddp; import tr "github.com/goiwarp/iwarp/transport"; var x = tr.Dial`, "transport.Dial is not in the contract"},
	} {
		f := parse(t, c.name, c.src)
		wrong := append(checkImports(f), checkContract(f, contract)...)
		require.Len(t, wrong, 1, c.src)
		require.Contains(t, wrong[0], c.want)
	}
}

func TestImportRulesLetTheRightOnesPass(t *testing.T) {
	contract := map[string]bool{"LLP": true}
	for _, c := range []struct{ name, src string }{
		{"ddp/a.go", `package ddp; import "github.com/goiwarp/iwarp/transport"; var x transport.LLP`},
		{"ddp/a_test.go", `package ddp_test; import _ "github.com/goiwarp/iwarp/ddp"; import _ "github.com/stretchr/testify/require"`},
		{"mpa/a.go", `package mpa; import "github.com/goiwarp/iwarp/transport"; var x transport.Stream`},
		{"a.go", `package iwarp; import _ "github.com/goiwarp/iwarp/rdmap"; import _ "golang.org/x/sys/unix"`},
		{"a_test.go", `package iwarp_test; import _ "github.com/goiwarp/iwarp/internal/wiretest"`},
		{"examples/x/a.go", `package main; import _ "github.com/goiwarp/iwarp"; import _ "github.com/spf13/cobra"`},
	} {
		f := parse(t, c.name, c.src)
		require.Empty(t, append(checkImports(f), checkContract(f, contract)...), c.src)
	}
}

// TestProgramsOfOthersStayLight: a program that imports a package of the library, except the observers, compiles no
// module that only commands and exporters need.
func TestProgramsOfOthersStayLight(t *testing.T) {
	packages := []string{"list", "-deps"}
	for name := range table {
		if !slices.Contains(observers, name) && !strings.Contains(name, "internal") {
			packages = append(packages, module+"/"+strings.TrimPrefix(name, "."))
		}
	}
	require.Greater(t, len(packages), 10)
	for i, p := range packages {
		packages[i] = strings.TrimSuffix(p, "/")
	}
	command := exec.CommandContext(t.Context(), "go", packages...)
	command.Dir = root
	deps, err := command.Output()
	require.NoError(t, err)
	require.Contains(t, string(deps), module+"/rdmap\n")
	for _, of := range []string{"prometheus", "spf13", "opentelemetry", "charmbracelet", "grpc"} {
		require.NotContains(t, string(deps), of)
	}
}
