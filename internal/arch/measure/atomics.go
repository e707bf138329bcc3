package measure

import (
	"cmp"
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// A Connection says which objects belong to one connection. Types are named by package path and
// name, "ddp.Stream", with ".QP" for the root package.
type Connection struct {
	Root string
	// Shared lists types of which several connections share one object, or whose objects last for only
	// one operation: pointers to them are not followed.
	Shared []string
	// Behind maps an interface to the type that implements it on a TCP connection of Linux. Other
	// interfaces are not followed.
	Behind map[string]string
}

// QP is the connection of this module.
var QP = Connection{
	Root:   ".QP",
	Shared: []string{".RNIC", ".PD", ".CQ", ".SRQ", "internal/soliciting.Solicitor", "internal/tally.Latencies", "stag.Table", "stag.Region", "transport.Poller", "internal/freelist.List"},
	Behind: map[string]string{"transport.LLP": "mpa.Conn", "transport.Stream": "transport.rawStream"},
}

// A Field is a variable of one connection.
type Field struct {
	Path string // from the root, "QP.rx.state"
	In   string // the package whose struct declares it, below the module; "." for the root
}

// A Shape lists fields of one connection.
type Shape struct {
	Atomics []Field // of a type of sync/atomic
	Mutexes []Field // sync.Mutex and sync.RWMutex, and mutexes with a rank in the lock order
}

// Engine selects the fields that the root package and the packages below internal declare: not those of the
// protocol layers, which count their own work and end by themselves.
func Engine(fields []Field) []Field {
	return slices.DeleteFunc(slices.Clone(fields), func(f Field) bool {
		return f.In != "." && !strings.HasPrefix(f.In, "internal/")
	})
}

// Shape lists the fields of a connection that are reached by value, or by a pointer that belongs to
// the connection. A struct that is held by value twice counts twice, an array once. A pointer is
// followed once for each type, and not if the connection already has a value of that type, to which it
// most likely points. The contents of slices, maps, channels, functions and atomic.Pointers are not
// followed. A field that is a pointer to an atomic variable does not count as a variable.
func (c *Connection) Shape(packages []*Package) (*Shape, error) {
	w := &walk{
		packages: packages,
		module:   packages[0].Module,
		seen:     make(map[*types.TypeName]bool),
		behind:   make(map[*types.TypeName]*types.TypeName),
		out:      &Shape{},
	}
	for _, name := range c.Shared {
		o, err := w.lookup(name)
		if err != nil {
			return nil, err
		}
		w.seen[o] = true
	}
	for name, to := range c.Behind {
		i, err := w.lookup(name)
		if err != nil {
			return nil, err
		}
		o, err := w.lookup(to)
		if err != nil {
			return nil, err
		}
		w.behind[i] = o
	}
	root, err := w.lookup(c.Root)
	if err != nil {
		return nil, err
	}
	w.pointers = []pointer{{root, root.Name()}}
	for len(w.pointers) > 0 {
		p := w.pointers[0]
		w.pointers = w.pointers[1:]
		if !w.seen[p.to] {
			w.visit(p.to.Type(), p.path, p.to.Pkg())
		}
	}
	return w.out, nil
}

type walk struct {
	packages []*Package
	module   string
	seen     map[*types.TypeName]bool // shared, or visited
	behind   map[*types.TypeName]*types.TypeName
	pointers []pointer // to be followed when all values have been visited
	out      *Shape
}

type pointer struct {
	to   *types.TypeName
	path string
}

// lookup finds a type by the name that Connection gives it.
func (w *walk) lookup(name string) (*types.TypeName, error) {
	dot := strings.LastIndex(name, ".")
	path := strings.TrimSuffix(w.module+"/"+name[:dot], "/")
	for _, p := range w.packages {
		if p.Path == path {
			if o, ok := p.Types.Scope().Lookup(name[dot+1:]).(*types.TypeName); ok {
				return o, nil
			}
		}
	}
	return nil, fmt.Errorf("there is no type %s", name)
}

// ours reports whether a type belongs to the module.
func (w *walk) ours(o *types.TypeName) bool {
	return slices.ContainsFunc(w.packages, func(p *Package) bool { return p.Types == o.Pkg() })
}

// visit visits a variable at path in a struct of package in.
func (w *walk) visit(t types.Type, path string, in *types.Package) {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		w.named(t, path, in)
	case *types.Struct:
		for f := range t.Fields() {
			w.visit(f.Type(), path+"."+f.Name(), f.Pkg())
		}
	case *types.Array:
		w.visit(t.Elem(), path+"[]", in)
	case *types.Pointer:
		if n, ok := types.Unalias(t.Elem()).(*types.Named); ok && w.ours(n.Obj()) {
			w.pointers = append(w.pointers, pointer{n.Obj(), path})
		}
	}
}

func (w *walk) named(t *types.Named, path string, in *types.Package) {
	o := t.Obj()
	if o.Pkg() == nil {
		return // error
	}
	f := Field{path, cmp.Or(strings.TrimPrefix(strings.TrimPrefix(in.Path(), w.module), "/"), ".")}
	switch full := o.Pkg().Path() + "." + o.Name(); {
	case o.Pkg().Path() == "sync/atomic":
		w.out.Atomics = append(w.out.Atomics, f)
	case full == "sync.Mutex", full == "sync.RWMutex", full == w.module+"/internal/lockorder.Mutex":
		w.out.Mutexes = append(w.out.Mutexes, f)
	case !w.ours(o):
	case types.IsInterface(t):
		if to := w.behind[o]; to != nil {
			w.pointers = append(w.pointers, pointer{to, path})
		}
	default:
		w.seen[o] = true
		w.visit(t.Underlying(), path, o.Pkg())
	}
}
