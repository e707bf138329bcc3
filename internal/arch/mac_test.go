package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/arch/measure"
)

// leaky are functions that compare octets and stop at the first difference.
var leaky = []string{"bytes.Equal", "bytes.Compare", "bytes.HasPrefix", "bytes.HasSuffix", "slices.Equal", "slices.Compare", "reflect.DeepEqual"}

// checkMACs finds comparisons whose duration reveals how many octets are right.
func checkMACs(f *measure.File) (wrong []string) {
	isString := func(e ast.Expr) bool {
		call, ok := e.(*ast.CallExpr)
		if !ok {
			return false
		}
		name, ok := call.Fun.(*ast.Ident)
		return ok && name.Name == "string"
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && slices.Contains(leaky, x.Name+"."+n.Sel.Name) {
				wrong = append(wrong, fmt.Sprintf("%s: %s.%s", f.Path, x.Name, n.Sel.Name))
			}
		case *ast.BinaryExpr:
			if (n.Op == token.EQL || n.Op == token.NEQ) && isString(n.X) && isString(n.Y) {
				wrong = append(wrong, fmt.Sprintf("%s: octets are compared as strings", f.Path))
			}
		}
		return true
	})
	return wrong
}

// TestCM_18_MACsAreComparedInConstantTime: package cm compares octets only with hmac.Equal.
func TestCM_18_MACsAreComparedInConstantTime(t *testing.T) {
	var wrong, calls []string
	for _, f := range tree(t) {
		if f.Package() != "cm" || f.IsTest() {
			continue
		}
		wrong = append(wrong, checkMACs(f)...)
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Equal" {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "hmac" {
					calls = append(calls, f.Path)
				}
			}
			return true
		})
	}
	require.Empty(t, wrong)
	require.Len(t, calls, 1, "in sameMAC")
}

func TestCheckOfMACsCanFail(t *testing.T) {
	for src, want := range map[string]string{
		`package cm; func same(a, b []byte) bool { return string(a) == string(b) }`:                 "compared as strings",
		`package cm; func other(a, b []byte) bool { return string(a) != string(b) }`:                "compared as strings",
		`package cm; import "bytes"; func same(a, b []byte) bool { return bytes.Equal(a, b) }`:      "bytes.Equal",
		`package cm; import "slices"; func same(a, b []byte) bool { return slices.Equal(a, b) }`:    "slices.Equal",
		`package cm; import "crypto/hmac"; func same(a, b []byte) bool { return hmac.Equal(a, b) }`: "",
	} {
		wrong := checkMACs(parse(t, "cm/a.go", src))
		if want == "" {
			require.Empty(t, wrong, src)
			continue
		}
		require.Len(t, wrong, 1, src)
		require.Contains(t, wrong[0], want)
	}
}
