package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A declared holds what a package declares: the members of each name, and "*" if the name may have others.
type declared map[string]map[string]bool

func (d declared) add(name, member string) {
	if d[name] == nil {
		d[name] = make(map[string]bool)
	}
	d[name][member] = true
}

// addDecl adds what a declaration declares.
func (d declared) addDecl(decl ast.Decl) {
	if f, ok := decl.(*ast.FuncDecl); ok {
		if f.Recv == nil {
			d.add(f.Name.Name, "")
			return
		}
		ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool { // of T[P], too
			id, ok := n.(*ast.Ident)
			if ok {
				d.add(id.Name, f.Name.Name)
			}
			return !ok
		})
		return
	}
	for _, s := range decl.(*ast.GenDecl).Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			d.addType(s)
		case *ast.ValueSpec:
			for _, n := range s.Names {
				d.add(n.Name, "*")
			}
		}
	}
}

func (d declared) addType(s *ast.TypeSpec) {
	d.add(s.Name.Name, "")
	var members *ast.FieldList
	switch t := s.Type.(type) {
	case *ast.StructType:
		members = t.Fields
	case *ast.InterfaceType:
		members = t.Methods
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr: // the members of another type
		d.add(s.Name.Name, "*")
		return
	default:
		return
	}
	for _, m := range members.List {
		if len(m.Names) == 0 { // embedded
			d.add(s.Name.Name, "*")
		}
		for _, n := range m.Names {
			d.add(s.Name.Name, n.Name)
		}
	}
}

var (
	linked = regexp.MustCompile(`\[\*?([A-Z]\w*[a-z]\w*)(?:\.[A-Z]\w*)?\]`)
	plain  = regexp.MustCompile(`(?:^|[^\w./])([A-Z]\w*)\.([A-Z]\w*)`)
)

// unknown returns what a comment names, in brackets or as a member of one of the package's types, and the package does
// not declare.
func (d declared) unknown(comment string) (wrong []string) {
	for _, m := range linked.FindAllStringSubmatch(comment, -1) {
		if d[m[1]] == nil {
			wrong = append(wrong, m[0])
		}
	}
	for _, m := range plain.FindAllStringSubmatch(comment, -1) {
		if members := d[m[1]]; members != nil && !members[m[2]] && !members["*"] {
			wrong = append(wrong, m[1]+"."+m[2])
		}
	}
	return wrong
}

// packagesIn returns what each package in the files declares, by directory.
func packagesIn(files map[string]*ast.File) map[string]declared {
	all := make(map[string]declared)
	for path, f := range files {
		dir := filepath.Dir(path)
		if all[dir] == nil {
			all[dir] = make(declared)
		}
		for _, decl := range f.Decls {
			all[dir].addDecl(decl)
		}
	}
	return all
}

// TestNamesInCommentsExist: a package declares what its comments name of it.
func TestNamesInCommentsExist(t *testing.T) {
	files, fset := make(map[string]*ast.File), token.NewFileSet()
	require.NoError(t, filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "testdata" || e.Name() == ".git"):
			return fs.SkipDir
		case filepath.Ext(path) != ".go", strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files[path], err = parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		return err
	}))
	all, comments := packagesIn(files), 0
	for _, path := range slices.Sorted(maps.Keys(files)) {
		for _, c := range files[path].Comments {
			comments++
			for _, name := range all[filepath.Dir(path)].unknown(c.Text()) {
				t.Errorf("%s: the package has no %s", fset.Position(c.Pos()), name)
			}
		}
	}
	require.Greater(t, comments, 5000)
}

// TestNamesThatAPackageLacksAreFound: also a member that only another type has.
func TestNamesThatAPackageLacksAreFound(t *testing.T) {
	const source = `package p
type Type struct { Field int }
func (*Type) Method()
type Alias = other.Type
type Generic[P any] struct{}
func (Generic[P]) Other()
var Value = 1`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
	require.NoError(t, err)
	d := packagesIn(map[string]*ast.File{"p.go": f})["."]
	for comment, want := range map[string][]string{
		"[Type], [*Type], [Type.Field], Type.Method, [Alias.Any], Generic.Other, [Value.Any]": nil,
		"[Type.Other] and Generic.Field":                  {"Type.Other", "Generic.Field"},
		"[Typo], [Typo.Field], other.Typo, [other.Typo]":  {"[Typo]", "[Typo.Field]"},
		"Generic.Method, Unknown.Method, [FILE], [Value]": {"Generic.Method"},
	} {
		require.Equal(t, want, d.unknown(comment), comment)
	}
}
