package measure

import (
	"go/token"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCyclomaticNumber(t *testing.T) {
	for _, c := range []struct {
		body string
		want int
	}{
		{``, 1},
		{`if a { b() } else { c() }`, 2},
		{`if a && b || c { d() }`, 4},
		{`for { for range a { } }`, 3},
		{`go func() { if a { b() } }()`, 2},
		{`switch { case a: b(); case c, d: e(); default: f() }`, 3},
		{`switch a.(type) { case b: c(); case d: e() }`, 3},
		{`select { case <-a: b(); case c <- d: e(); default: f() }`, 3},
		// Plain switches.
		{`switch op { case A: return 1; case 2, pkg.B: x = 2; case -C, D | E: f(); case (F): break; default: g() }`, 2},
		{`switch op { case A: case B: }`, 2},
		// Not plain: a body of two statements, a body that branches, and cases that are not constant.
		{`switch op { case A: f(); g(); case B: h() }`, 3},
		{`switch op { case A: if b { c() }; case B: h() }`, 4},
		{`switch op { case f(): g(); case B: h() }`, 3},
		{`switch op { case x.y.z: g(); case B: h() }`, 3},
	} {
		f, err := Parse(token.NewFileSet(), "a.go", []byte("package p\nfunc f() {"+c.body+"}"))
		require.NoError(t, err, c.body)
		require.Equal(t, c.want, f.Funcs()[0].Cyclomatic, c.body)
	}
}

func TestFuncs(t *testing.T) {
	const src = `package p

// The comment before does not count.
func a() {
	// One inside does.
}

func (p *P[K, L]) b() {}
func (P) c()          {}
func d()
func (*Q[K]) e() {}
`
	f, err := Parse(token.NewFileSet(), "x/a.go", []byte(src))
	require.NoError(t, err)
	require.Equal(t, []Func{
		{"x/a.go", "a", 3, 1}, {"x/a.go", "P.b", 1, 1}, {"x/a.go", "P.c", 1, 1}, {"x/a.go", "Q.e", 1, 1},
	}, f.Funcs())
	require.Empty(t, FuncsOver([]*File{f}))
	test, err := Parse(token.NewFileSet(), "x/a_test.go", []byte("package p\n\n\n"))
	require.NoError(t, err)
	files := []*File{f, test}
	require.Equal(t, map[string]int{"x": 11}, Lines(files))
	require.Equal(t, []string{"a.go"}, Longer(files, "x", 10))
	require.Empty(t, Longer(files, "x", 11))
	require.Empty(t, Longer(files, ".", 0))
}
