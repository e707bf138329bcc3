package measure

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// parts returns a connection in three packages, on stand-ins for packages of the standard library.
func parts(t *testing.T) []*Package {
	t.Helper()
	atomic := checked(t, "sync/atomic", map[string]string{"a.go": `type Int64 struct{ v int64 }; type Pointer[T any] struct{ v *T }`})
	sync := checked(t, "sync", map[string]string{"a.go": `type Mutex struct{ v int }; type RWMutex struct{ v int }`})
	below := checked(t, "m/below", map[string]string{"a.go": `
import "sync/atomic"
type Lower interface{ Do() }
type lower struct { n atomic.Int64; up *lower }
func (*lower) Do() {}
`}, atomic)
	internal := checked(t, "m/internal/x", map[string]string{"a.go": `
import "sync"
type Part struct { mu sync.RWMutex }
`}, sync)
	lockorder := checked(t, "m/internal/lockorder", map[string]string{"a.go": `
import "sync"
type Mutex[R any] struct { sync.Mutex }
`}, sync)
	root := checked(t, "m", map[string]string{"a.go": `
import ("sync"; "sync/atomic"; "m/below"; "m/internal/lockorder"; "m/internal/x")
type device struct { n atomic.Int64 }
type counter struct { n atomic.Int64; qp *QP }
type twice = counter
type QP struct {
	dev     *device
	mu      sync.Mutex
	a, b    counter
	first   *twice
	both    [2]counter
	p       atomic.Pointer[counter]
	borrowed *atomic.Int64
	many    []counter
	lower   below.Lower
	another below.Lower
	plain   int
	inner   struct { n atomic.Int64 }
	x.Part
	ranked  lockorder.Mutex[device]
	own     *own
}
type own struct { n atomic.Int64; err error }
`}, atomic, sync, below, lockorder, internal)
	return []*Package{below, lockorder, internal, root}
}

func TestShapeOfAConnection(t *testing.T) {
	c := &Connection{Root: ".QP", Shared: []string{".device"}, Behind: map[string]string{"below.Lower": "below.lower"}}
	s, err := c.Shape(parts(t))
	require.NoError(t, err)
	require.Equal(t, []Field{
		{"QP.a.n", "."},
		{"QP.b.n", "."},
		{"QP.both[].n", "."},
		{"QP.p", "."},
		{"QP.inner.n", "."},
		{"QP.lower.n", "below"},
		{"QP.own.n", "."},
	}, s.Atomics)
	require.Equal(t, []Field{{"QP.mu", "."}, {"QP.Part.mu", "internal/x"}, {"QP.ranked", "."}}, s.Mutexes)
	require.Len(t, Engine(s.Atomics), 6)
	require.Len(t, Engine(s.Mutexes), 3)
}

func TestShapeNamesTypesThatAreThere(t *testing.T) {
	for _, c := range []*Connection{
		{Root: ".RP"},
		{Root: "above.QP"},
		{Root: ".QP", Shared: []string{".none"}},
		{Root: ".QP", Behind: map[string]string{"below.None": "below.lower"}},
		{Root: ".QP", Behind: map[string]string{"below.Lower": "below.none"}},
	} {
		_, err := c.Shape(parts(t))
		require.ErrorContains(t, err, "there is no type")
	}
}

func TestMethods(t *testing.T) {
	p := checked(t, "m", map[string]string{
		"a.go": `type QP struct{ E }; func (QP) A() {}; func (*QP) b() {}; type E struct{}; func (E) c() {}`,
		"b.go": `func (*QP) d() {}`,
	})
	methods, files := p.Methods("QP")
	require.Equal(t, 3, methods)
	require.Equal(t, 2, files)
	methods, files = p.Methods("CQ")
	require.Zero(t, methods)
	require.Zero(t, files)
}
