package arch

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// exported returns the exported names of the library. Names outside the root package are prefixed with their package.
// The value of a struct is its fields in order. Methods and fields are named Type.Name.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	names := make(map[string][]string)
	for _, f := range tree(t) {
		if f.IsTest() || under(f.Package(), programs) || strings.Contains(f.Package(), "internal") {
			continue
		}
		prefix := f.AST.Name.Name + "."
		if f.Package() == "." {
			prefix = ""
		}
		for _, d := range f.AST.Decls {
			addExported(names, prefix, d)
		}
	}
	for name, of := range aliases(t) {
		names[name] = names[of]
		for _, field := range names[of] {
			names[name+"."+field] = nil
		}
	}
	return names
}

// aliases returns the types of the root package that are aliases of a type in another package of the library.
func aliases(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for _, f := range tree(t) {
		if f.Package() != "." || f.IsTest() {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if ts, ok := n.(*ast.TypeSpec); ok && ts.Assign.IsValid() {
				if of, ok := ts.Type.(*ast.SelectorExpr); ok {
					if p, ok := of.X.(*ast.Ident); ok {
						found[ts.Name.Name] = p.Name + "." + of.Sel.Name
					}
				}
			}
			return true
		})
	}
	return found
}

func addExported(names map[string][]string, prefix string, d ast.Decl) {
	for _, n := range declared(d) {
		names[prefix+n] = nil
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if of := receiver(d); of != "" {
			names[prefix+of+"."+d.Name.Name] = nil
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			ts, ok := s.(*ast.TypeSpec)
			if !ok {
				continue
			}
			st, ok := ts.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, field := range st.Fields.List {
				for _, n := range field.Names {
					if n.IsExported() {
						names[prefix+ts.Name.Name] = append(names[prefix+ts.Name.Name], n.Name)
						names[prefix+ts.Name.Name+"."+n.Name] = nil
					}
				}
			}
		}
	}
}

// receiver returns the name of the method's receiver type, "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	x := d.Recv.List[0].Type
	if p, ok := x.(*ast.StarExpr); ok {
		x = p.X
	}
	if id, ok := x.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

var (
	quoted     = regexp.MustCompile("`([^`]+)`")
	settings   = regexp.MustCompile("(?m)^### `([A-Za-z.]+)`$")
	nameOfTest = regexp.MustCompile(`^[a-z]+\.(Test|Fuzz)`) // see package conformance
	nameOfAPI  = regexp.MustCompile(`^(?:[a-z]+\.)?[A-Z][A-Za-z]+(?:\.[A-Z][A-Za-z]+)?$`)
)

// fieldsIn lists the fields in the first column of a section's table.
func fieldsIn(section string) []string {
	var fields []string
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		column, _, _ := strings.Cut(line[2:], "|")
		for _, m := range quoted.FindAllStringSubmatch(column, -1) {
			fields = append(fields, m[1])
		}
	}
	return fields
}

// TestHardeningHasEverySetting: each section named after a struct lists all of its fields, and no others. Each struct
// with which a program configures the verbs and the packages on them has a section.
func TestHardeningHasEverySetting(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "hardening.md"))
	require.NoError(t, err)
	names := exported(t)
	sections := settings.FindAllSubmatchIndex(text, -1)
	require.Greater(t, len(sections), 10)
	for _, at := range sections {
		section, _, _ := strings.Cut(string(text[at[1]:]), "\n##")
		of := string(text[at[2]:at[3]])
		require.NotEmpty(t, names[of], "%s is no struct", of)
		want, got := slices.Sorted(slices.Values(names[of])), slices.Sorted(slices.Values(fieldsIn(section)))
		require.Equal(t, want, got, "the fields of %s, and the rows of its section in docs/hardening.md", of)
	}
	for name, fields := range names {
		of, typ, dotted := strings.Cut(name, ".")
		if !dotted {
			of, typ = "", name
		}
		if len(fields) > 0 && strings.HasSuffix(typ, "Config") && slices.Contains([]string{"", "cm", "rma", "solicit", "rsocket", "rpcrdma"}, of) {
			require.True(t, strings.Contains(string(text), "\n### `"+name+"`\n"), "docs/hardening.md has a section of %s", name)
		}
	}
}

// TestPoliciesNameWhatExists: the library has all names of the form Type.Field or package.Type.Field, and all names of
// Events.
func TestPoliciesNameWhatExists(t *testing.T) {
	names := exported(t)
	for _, file := range []string{"SECURITY.md", "docs/hardening.md", "docs/security.md"} {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		require.NoError(t, err)
		for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
			name := m[1]
			first, _, dotted := strings.Cut(name, ".")
			if !nameOfAPI.MatchString(name) || nameOfTest.MatchString(name) || !dotted && !strings.HasPrefix(name, "Event") {
				continue
			}
			if _, known := names[name]; !known && (token.IsExported(first) || slices.Contains(policyPackages, first)) {
				// A section about a package may omit its name.
				require.True(t, slices.ContainsFunc(policyPackages, func(p string) bool { _, ok := names[p+"."+name]; return ok }), "%s names %s", file, name)
			}
		}
	}
}

// policyPackages are the packages with settings, besides the root package.
var policyPackages = []string{"cm", "rma", "solicit", "rsocket", "rpcrdma", "transport", "commit", "stag"}
