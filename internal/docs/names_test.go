package docs

import (
	"fmt"
	"go/token"
	"go/types"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/goiwarp/iwarp"

// packages are the public packages, whose names documents may use with a qualifier.
var packages = []string{"cm", "commit", "ddp", "mpa", "rdmap", "regionkey", "rma", "rpcrdma", "rsocket", "solicit", "stag", "transport"}

var (
	member    = regexp.MustCompile(`(?:^|[^\w./])([A-Z]\w+)\.([A-Z]\w+)`)
	qualified = regexp.MustCompile(`(?:^|[^\w./])([a-z]+)\.([A-Z]\w+)(?:\.([A-Z]\w+))?`)
)

// api is the exported part of the public packages, by name. The name of the root package is "iwarp".
type api map[string]*types.Scope

func loadAPI(t *testing.T) api {
	t.Helper()
	imports := exported(t, token.NewFileSet())
	a := make(api)
	for _, p := range append([]string{""}, packages...) {
		pkg, err := imports.Import(strings.TrimSuffix(module+"/"+p, "/"))
		require.NoError(t, err)
		a[pkg.Name()] = pkg.Scope()
	}
	return a
}

// unknown returns what is wrong with a name and with its member, if member is not empty.
func (a api) unknown(pkg, name, member string) string {
	o := a[pkg].Lookup(name)
	switch {
	case strings.HasPrefix(name, "Test"), strings.HasPrefix(name, "Fuzz"):
		return "" // in a test file
	case o == nil:
		return fmt.Sprintf("%s has no %s", pkg, name)
	case member == "":
		return ""
	}
	if m, _, _ := types.LookupFieldOrMethod(types.NewPointer(o.Type()), true, nil, member); m != nil {
		return ""
	}
	if m, _, _ := types.LookupFieldOrMethod(o.Type(), true, nil, member); m != nil { // of an interface
		return ""
	}
	return fmt.Sprintf("%s.%s has no %s", pkg, name, member)
}

// has reports whether any of the packages has a type of that name with that member: a section about a package does not
// repeat the package's name.
func (a api) has(name, member string) bool {
	for pkg, scope := range a {
		if scope.Lookup(name) != nil && a.unknown(pkg, name, member) == "" {
			return true
		}
	}
	return false
}

// check looks up all names in the code of a line.
func (a api) check(line string) (wrong []string) {
	for _, code := range inlineCode.FindAllString(line, -1) {
		code = strings.Trim(code, "`")
		for _, m := range member.FindAllStringSubmatch(code, -1) {
			if a["iwarp"].Lookup(m[1]) != nil && !a.has(m[1], m[2]) {
				wrong = append(wrong, a.unknown("iwarp", m[1], m[2]))
			}
		}
		for _, m := range qualified.FindAllStringSubmatch(code, -1) {
			if a[m[1]] != nil {
				wrong = append(wrong, a.unknown(m[1], m[2], m[3]))
			}
		}
	}
	return wrong
}

func TestNamesInDocumentsExist(t *testing.T) {
	a := loadAPI(t)
	for _, d := range everyDocument(t) {
		if d.path == "CHANGELOG.md" { // it has names of earlier versions
			continue
		}
		for i, line := range d.prose {
			for _, w := range a.check(line) {
				if w != "" {
					t.Errorf("%s:%d: %s", d.path, i+1, w)
				}
			}
		}
	}
}

func TestNamesThatDoNotExistAreFound(t *testing.T) {
	a := loadAPI(t)
	require.Equal(t, []string{"iwarp.QP has no Gone", "cm has no Gone", ""},
		a.check("`QP.Send` and `QP.Gone`, QP.Gone outside, `cm.Gone`, `iwarp.QPConfig.PD`"))
}
