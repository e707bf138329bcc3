package docs

import (
	"fmt"
	"go/constant"
	"go/types"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// exportedErrors lists the variables and types of a package that are errors, prefixed with the package's name.
func (a api) exportedErrors(pkg string) (names []string) {
	fault := types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
	scope := a[pkg]
	for _, name := range scope.Names() {
		o := scope.Lookup(name)
		switch o.(type) {
		case *types.Var:
			if !types.Implements(o.Type(), fault) {
				continue
			}
		case *types.TypeName:
			if types.IsInterface(o.Type()) || !types.Implements(types.NewPointer(o.Type()), fault) {
				continue
			}
		default:
			continue
		}
		if o.Exported() {
			names = append(names, pkg+"."+name)
		}
	}
	return names
}

// constants lists the constants of a package that have a type of that name.
func (a api) constants(pkg, typ string) (all []*types.Const) {
	for _, name := range a[pkg].Names() {
		c, ok := a[pkg].Lookup(name).(*types.Const)
		if !ok || !c.Exported() {
			continue
		}
		if n, ok := types.Unalias(c.Type()).(*types.Named); ok && n.Obj().Name() == typ {
			all = append(all, c)
		}
	}
	return all
}

func TestTroubleshootingHasEveryError(t *testing.T) {
	a, text := loadAPI(t), page(t, "docs/troubleshooting.md")
	for pkg := range a {
		for _, name := range a.exportedErrors(pkg) {
			require.Contains(t, text, "`"+name+"`")
		}
	}
	for _, c := range []struct {
		pkg, typ, prefix string
	}{
		{"iwarp", "Status", ""},
		{"iwarp", "EventKind", ""},
		{"cm", "Reason", "cm."},
		{"cm", "Code", "cm."},
		{"commit", "Code", "commit."},
	} {
		all := a.constants(c.pkg, c.typ)
		require.Greater(t, len(all), 5, c)
		for _, k := range all {
			if k.Name() != "OK" {
				require.Contains(t, text, "`"+c.prefix+k.Name()+"`")
			}
		}
	}
	require.Len(t, a.exportedErrors("iwarp"), 13+4)
}

var codeRow = regexp.MustCompile(`(?m)^\| (\d/\d/[0-9a-f]{2}) \|`)

func TestTroubleshootingHasEveryTerminateCode(t *testing.T) {
	a, text := loadAPI(t), page(t, "docs/troubleshooting.md")
	want := make(map[string]bool)
	for _, c := range a.constants("transport", "Code") {
		v, ok := constant.Uint64Val(c.Val())
		require.True(t, ok)
		want[fmt.Sprintf("%d/%d/%02x", v>>12, v>>8&0xf, v&0xff)] = true
	}
	require.Greater(t, len(want), 30)
	for _, m := range codeRow.FindAllStringSubmatch(text, -1) {
		require.True(t, want[m[1]], "%s is no code, or has a row already", m[1])
		want[m[1]] = false
	}
	for code, missing := range want {
		require.False(t, missing, "%s has no row", code)
	}
}
