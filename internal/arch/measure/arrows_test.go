package measure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"math/rand/v2"
	pathpkg "path"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// checked type-checks the files of one package, which imports only the given packages.
func checked(t *testing.T, path string, files map[string]string, imports ...*Package) *Package {
	t.Helper()
	p := &Package{Path: path, Module: "m", Fset: token.NewFileSet(), Info: &types.Info{
		Defs: make(map[*ast.Ident]types.Object),
		Uses: make(map[*ast.Ident]types.Object),
	}}
	imp := &sourceFirst{checked: make(map[string]*types.Package)}
	for _, i := range imports {
		imp.checked[i.Path] = i.Types
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := parser.ParseFile(p.Fset, name, "package "+pathpkg.Base(path)+"\n"+files[name], 0)
		require.NoError(t, err)
		p.Files = append(p.Files, f)
	}
	var err error
	p.Types, err = (&types.Config{Importer: imp}).Check(path, p.Fset, p.Files, p.Info)
	require.NoError(t, err)
	return p
}

func TestArrowsAreCallsOfFunctionsAndMethodsElsewhere(t *testing.T) {
	const b = `
type T struct{ field int }
func (*T) Method() {}
type G[K any] struct{}
func (G[K]) Method() {}
type I interface{ Do() }
type E struct{ T }
var V int
const C = 1
func F() {}
func Generic[K any]() {}
func local() { F(); var t T; t.Method() }
`
	for _, c := range []struct {
		name, a      string
		calls, names map[string]int
	}{
		{"a call", `func f() { F(); F() }`, map[string]int{"F": 2}, nil},
		{"a function that is not called", `var f = F`, map[string]int{"F": 1}, nil},
		{"a generic function", `func f() { Generic[int]() }`, map[string]int{"Generic": 1}, nil},
		{"a method", `func f(t *T) { t.Method() }`, map[string]int{"T.Method": 1}, map[string]int{"T": 1}},
		{"a method value", `func f(t *T) func() { return t.Method }`, map[string]int{"T.Method": 1}, map[string]int{"T": 1}},
		{"a method of a generic type", `func f() { G[int]{}.Method() }`, map[string]int{"G.Method": 1}, map[string]int{"G": 1}},
		{"a promoted method", `func f(e *E) { e.Method() }`, map[string]int{"T.Method": 1}, map[string]int{"E": 1}},
		{"a method of an interface", `func f(i I) { i.Do() }`, nil, map[string]int{"I.Do": 1, "I": 1}},
		{"data", `func f(t *T) int { return t.field + V + C }`, nil, map[string]int{"T": 1, "field": 1, "V": 1, "C": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			arrows := checked(t, "m", map[string]string{"a.go": c.a, "b.go": b}).Arrows()
			require.Len(t, arrows, 1)
			require.Equal(t, "a.go", arrows[0].From)
			require.Equal(t, "b.go", arrows[0].To)
			for name, n := range c.calls {
				require.Equal(t, n, arrows[0].Calls[name], name)
			}
			require.Len(t, arrows[0].Calls, len(c.calls))
			for _, name := range slices.Sorted(maps.Keys(c.names)) {
				require.Contains(t, arrows[0].Names, name)
			}
			all := WithNames(arrows)
			require.Len(t, all[0].Calls, len(arrows[0].Calls)+len(arrows[0].Names))
		})
	}
}

func TestArrowsStayInThePackage(t *testing.T) {
	other := checked(t, "m/other", map[string]string{"b.go": "func F() {}"})
	p := checked(t, "m", map[string]string{"a.go": `
import other "m/other"
func f() { other.F(); g(); x := 1; _ = x }
func g() {}
`, "b.go": ""}, other)
	require.Empty(t, p.Arrows())
}

func arrow(from, to string, weight int) *Arrow {
	return &Arrow{From: from, To: to, Calls: map[string]int{"f": weight}}
}

func TestOrderOfALineHasNoArrowUp(t *testing.T) {
	o := BestOrder([]*Arrow{arrow("c", "b", 1), arrow("b", "a", 1), arrow("c", "a", 1)}, Unit)
	require.Equal(t, []string{"c", "b", "a"}, o.Files)
	require.Zero(t, o.Percent())
	require.Equal(t, 1, o.Largest)
	require.Zero(t, BestOrder(nil, Unit).Percent())
}

func TestOrderBreaksACircleWhereItIsThinnest(t *testing.T) {
	arrows := []*Arrow{arrow("a", "b", 3), arrow("b", "c", 1), arrow("c", "a", 2), {From: "c", To: "b", Names: map[string]int{"T": 9}}}
	o := BestOrder(arrows, (*Arrow).Weight)
	require.Equal(t, []string{"c", "a", "b"}, o.Files)
	require.Equal(t, arrows[1:2], o.Up)
	require.InDelta(t, 100.0/6, o.Percent(), 0.01)
	require.Equal(t, 3, o.Largest)
	require.InDelta(t, 100.0/3, BestOrder(arrows, Unit).Percent(), 0.01)
}

// least returns the weight of the arrows up in the best of all orders.
func least(g *graph) int {
	best := 1 << 30
	order := make([]int, len(g.files))
	for i := range order {
		order[i] = i
	}
	var permute func(k int)
	permute = func(k int) {
		if k == len(order) {
			best = min(best, g.cost(order))
		}
		for i := k; i < len(order); i++ {
			order[k], order[i] = order[i], order[k]
			permute(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	permute(0)
	return best
}

func TestOrderIsTheBestOfAll(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		var arrows []*Arrow
		for from := range 7 {
			for to := range 7 {
				if from != to && rnd.IntN(3) == 0 {
					arrows = append(arrows, arrow(string(rune('a'+from)), string(rune('a'+to)), 1+rnd.IntN(5)))
				}
			}
		}
		o := BestOrder(arrows, (*Arrow).Weight)
		require.Equal(t, least(newGraph(arrows, (*Arrow).Weight)), o.UpN)
		n := 0
		for _, a := range o.Up {
			n += a.Weight()
		}
		require.Equal(t, n, o.UpN)
		require.Equal(t, o, BestOrder(arrows, (*Arrow).Weight), "it is the same in every run")
	}
}
