package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sourceNames are the names in the module's source, without tests: functions, types, constants, variables, and members,
// which are also listed as Type.member. The value is true for the names of types.
type sourceNames map[string]bool

func (d sourceNames) add(f *ast.File) {
	for _, decl := range f.Decls {
		switch x := decl.(type) {
		case *ast.FuncDecl:
			d.name(x.Name.Name)
			if x.Recv != nil {
				d.name(receiver(x.Recv.List[0].Type) + "." + x.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range x.Specs {
				d.spec(s)
			}
		}
	}
}

func (d sourceNames) name(n string) {
	if _, there := d[n]; !there {
		d[n] = false
	}
}

func (d sourceNames) spec(s ast.Spec) {
	switch x := s.(type) {
	case *ast.ValueSpec:
		for _, n := range x.Names {
			d.name(n.Name)
		}
	case *ast.TypeSpec:
		d[x.Name.Name] = true
		var members *ast.FieldList
		switch of := x.Type.(type) {
		case *ast.StructType:
			members = of.Fields
		case *ast.InterfaceType:
			members = of.Methods
		default:
			return
		}
		for _, f := range members.List {
			for _, n := range f.Names {
				d.name(n.Name)
				d.name(x.Name.Name + "." + n.Name)
			}
		}
	}
}

// receiver returns the name of a method's receiver type.
func receiver(x ast.Expr) string {
	for {
		switch of := x.(type) {
		case *ast.StarExpr:
			x = of.X
		case *ast.IndexExpr:
			x = of.X
		case *ast.Ident:
			return of.Name
		default:
			return ""
		}
	}
}

// has reports whether a name exists. It ignores a package in front of the name, but not a type.
func (d sourceNames) has(name string) bool {
	parts := strings.Split(name, ".")
	last := parts[len(parts)-1]
	if n := len(parts) - 2; n >= 0 && d[parts[n]] {
		last = parts[n] + "." + last
	}
	_, ok := d[last]
	return ok
}

func namesOfSource(t *testing.T) sourceNames {
	t.Helper()
	d := make(sourceNames)
	require.NoError(t, filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			d.add(f)
		}
		return err
	}))
	return d
}

var identifier = regexp.MustCompile(`^\w+(\.\w+)*$`)

// TestArchitectureNamesWhatExists: the unexported names and the files in the paths, and in the table after them, exist.
func TestArchitectureNamesWhatExists(t *testing.T) {
	names := namesOfSource(t)
	text := page(t, "docs/architecture.md")
	_, text, ok := strings.Cut(text, "\n## Six paths")
	require.True(t, ok)
	text, _, ok = strings.Cut(text, "\n## Terms")
	require.True(t, ok)
	for _, code := range inlineCode.FindAllString(text, -1) {
		switch code = strings.Trim(code, "`"); {
		case strings.HasPrefix(code, "testing/"):
		case strings.Contains(code, "/"), strings.HasSuffix(code, ".go"):
			_, err := os.Stat(filepath.Join(root, filepath.FromSlash(code)))
			require.NoError(t, err, "docs/architecture.md")
		case identifier.MatchString(code):
			require.True(t, names.has(code), "docs/architecture.md: there is no %s", code)
		}
	}
	require.True(t, names.has("ddp.Stream.Take"))
	require.False(t, names.has("ddp.Stream.Grab"))
	require.False(t, names.has("grab"))
}
