package iwarp_test

import (
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withoutExample lists, by reason, the functions and methods that need no example of their
// own.
var withoutExample = map[string]string{
	"it tells what something is, and examples of others ask it": `
		ConnRequest.IRD ConnRequest.LocalAddr ConnRequest.ORD ConnRequest.PrivateData ConnRequest.RemoteAddr
		Listener.Addr MR.Len MR.STag MW.Len MW.STag
		QP.Err QP.IRD QP.LocalAddr QP.ORD QP.PeerIRD QP.PeerORD QP.PrivateData QP.RecvCQ QP.RemoteAddr QP.SendCQ
		QP.CommitLimits QP.State QP.Terminated RNIC.EventsDropped RNIC.Limits RemoteMemory.Size`,
	"it does for a window what the one of MR does for a region": `
		MW.AdvertiseRange`,
	"it gives something back, and there is nothing to see": `
		Listener.Close MW.Close PD.Close SRQ.Close`,
	"fmt and errors call it": `
		EventKind.String Op.String State.String PostError.Error PostError.Unwrap RejectError.Error RejectError.Is
		TerminateError.Error TerminateError.Is TerminateError.Unwrap ListError.Error ListError.Unwrap`,
	"the data path calls it": `
		FileBuffer.ReadAt FileBuffer.Size FileBuffer.WriteAt`,
}

// TestEveryVerbHasAnExample: a reader finds each function and method at work on its
// documentation page.
func TestEveryVerbHasAnExample(t *testing.T) {
	page := documentation(t)
	has := map[string]bool{}
	funcs := page.Funcs
	for _, typ := range page.Types {
		funcs = append(funcs, typ.Funcs...)
		for _, m := range typ.Methods {
			has[typ.Name+"."+m.Name] = areRun(t, m.Examples)
		}
	}
	for _, f := range funcs {
		has[f.Name] = areRun(t, f.Examples)
	}
	for reason, names := range withoutExample {
		for name := range strings.FieldsSeq(names) {
			example, exists := has[name]
			require.True(t, exists && !example, "%s needs no exemption (%s)", name, reason)
			has[name] = true
		}
	}
	for name, ok := range has {
		if !ok {
			t.Errorf("%s has no example", name)
		}
	}
}

// TestEveryOperationHasAnExample: each is posted by an example of PostSend, with a
// receive where it takes one.
func TestEveryOperationHasAnExample(t *testing.T) {
	page := documentation(t)
	used := map[string]bool{}
	for _, e := range examplesOf(t, page, "QP", "PostSend") {
		ast.Inspect(e.Code, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				used[s.Sel.Name] = true
			}
			return true
		})
	}
	for _, c := range page.Types {
		if c.Name != "Op" {
			continue
		}
		for _, values := range c.Consts {
			for _, name := range values.Names {
				require.True(t, used[name] || strings.HasPrefix(name, "OpRecv"), "no example posts %s", name)
			}
		}
	}
}

// areRun reports whether there are examples. Each has an output, so that it runs as a test.
func areRun(t *testing.T, examples []*doc.Example) bool {
	for _, e := range examples {
		require.NotEmpty(t, e.Output, "of Example%s", e.Name)
	}
	return len(examples) > 0
}

// examplesOf returns the examples of a method.
func examplesOf(t *testing.T, page *doc.Package, typ, method string) []*doc.Example {
	for _, ty := range page.Types {
		for _, m := range ty.Methods {
			if ty.Name == typ && m.Name == method {
				return m.Examples
			}
		}
	}
	t.Fatalf("there is no %s.%s", typ, method)
	return nil
}

// documentation reads the package as pkg.go.dev does.
func documentation(t *testing.T) *doc.Package {
	system := build.Default
	system.GOOS, system.GOARCH = "linux", "amd64"
	p, err := system.ImportDir(".", 0)
	require.NoError(t, err)
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range append(p.GoFiles, p.XTestGoFiles...) {
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, f)
	}
	page, err := doc.NewFromFiles(set, files, "github.com/goiwarp/iwarp")
	require.NoError(t, err)
	return page
}
