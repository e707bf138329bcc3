package measure

import (
	"cmp"
	"go/ast"
	"go/types"
	"maps"
	"slices"
)

// An Arrow says that one file of a package uses what another one declares.
type Arrow struct {
	From, To string         // base names of the files
	Calls    map[string]int // functions and methods of To, and how often From names them
	Names    map[string]int // the rest of To that From names: types, fields, variables, constants
}

// Weight is how often From names a function or a method of To.
func (a *Arrow) Weight() int {
	n := 0
	for _, k := range a.Calls {
		n += k
	}
	return n
}

// Arrows lists the arrows between the files of a package, sorted by From and To.
//
// A use is an identifier that the type checker resolves to an object that another file of the same
// package declares at package level, or as a method or a field. It counts as a call if the object is a
// function, or a method with a body, whether it is called or only named, since a method value runs
// sooner or later. A method of an interface is not a call: the file that declares the interface does
// not run. It counts under Names, with types, fields, variables and constants. An arrow without Calls
// depends only on data.
//
// Calls of a generic function or method count for the declaration. Uses through another package, or from
// a file to itself, are not counted.
func (p *Package) Arrows() []*Arrow {
	type pair struct{ from, to string }
	arrows := make(map[pair]*Arrow)
	for _, f := range p.Files {
		from := p.file(f.Package)
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			o := p.Info.Uses[id]
			if o == nil || o.Pkg() != p.Types || !o.Pos().IsValid() || !outlives(o, p.Types) {
				return true
			}
			to := p.file(o.Pos())
			if to == from {
				return true
			}
			a := arrows[pair{from, to}]
			if a == nil {
				a = &Arrow{From: from, To: to, Calls: make(map[string]int), Names: make(map[string]int)}
				arrows[pair{from, to}] = a
			}
			if name, call := describe(o); call {
				a.Calls[name]++
			} else {
				a.Names[name]++
			}
			return true
		})
	}
	return slices.SortedFunc(maps.Values(arrows), func(a, b *Arrow) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
}

// WithNames returns the arrows with all Names counted as calls.
func WithNames(arrows []*Arrow) []*Arrow {
	var all []*Arrow
	for _, a := range arrows {
		calls := maps.Clone(a.Calls)
		for name, n := range a.Names {
			calls[name] += n
		}
		all = append(all, &Arrow{From: a.From, To: a.To, Calls: calls})
	}
	return all
}

// outlives reports whether o is declared at package level, or is a method or a field.
func outlives(o types.Object, in *types.Package) bool {
	switch o := o.(type) {
	case *types.Func:
		return true
	case *types.Var:
		return o.IsField() || o.Parent() == in.Scope()
	default:
		return o.Parent() == in.Scope()
	}
}

// describe returns the name of o, and reports whether o is a function or a method with a body.
func describe(o types.Object) (name string, call bool) {
	f, ok := o.(*types.Func)
	if !ok {
		return o.Name(), false
	}
	recv := f.Signature().Recv()
	if recv == nil {
		return f.Name(), true
	}
	t := recv.Type()
	if ptr, ok := t.(*types.Pointer); ok {
		t = ptr.Elem()
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj().Name() + "." + f.Name(), !types.IsInterface(t)
	}
	return f.Name(), !types.IsInterface(t)
}
