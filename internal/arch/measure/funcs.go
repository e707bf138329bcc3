package measure

import (
	"go/ast"
	"go/token"
)

// The limits of a function.
const (
	MaxLines      = 60
	MaxCyclomatic = 15
)

// A Func is a function or a method.
type Func struct {
	File       string // the path of its file
	Name       string // "serve", "QP.Close"
	Lines      int    // from func to the closing brace, comments and empty lines included
	Cyclomatic int
}

// Over reports whether the function exceeds a limit.
func (f Func) Over() bool { return f.Lines > MaxLines || f.Cyclomatic > MaxCyclomatic }

// Funcs measures the functions that a file declares. Function literals belong to the function in
// which they stand.
func (f *File) Funcs() []Func {
	var funcs []Func
	for _, d := range f.AST.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
			funcs = append(funcs, Func{
				File:       f.Path,
				Name:       name(d),
				Lines:      f.Fset.Position(d.End()).Line - f.Fset.Position(d.Pos()).Line + 1,
				Cyclomatic: cyclomatic(d.Body),
			})
		}
	}
	return funcs
}

// FuncsOver lists the functions of all packages that exceed a limit, except in tests.
func FuncsOver(files []*File) []Func {
	var over []Func
	for _, f := range files {
		if f.IsTest() {
			continue
		}
		for _, fn := range f.Funcs() {
			if fn.Over() {
				over = append(over, fn)
			}
		}
	}
	return over
}

// name returns the name of a function, preceded by its receiver's type.
func name(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}

// cyclomatic returns McCabe's number: 1, plus 1 for each if, for and range, each case except default of a
// switch or select, each && and each ||. A plain switch counts 1 in total.
func cyclomatic(body *ast.BlockStmt) int {
	n := 1
	ast.Inspect(body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.SwitchStmt:
			if plain(node) {
				n++
			} else {
				n += cases(node.Body)
			}
		case *ast.TypeSwitchStmt:
			n += cases(node.Body)
		case *ast.SelectStmt:
			n += cases(node.Body)
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// cases counts the cases of a switch or select except default.
func cases(body *ast.BlockStmt) int {
	n := 0
	for _, s := range body.List {
		switch s := s.(type) {
		case *ast.CaseClause:
			if s.List != nil {
				n++
			}
		case *ast.CommClause:
			if s.Comm != nil {
				n++
			}
		}
	}
	return n
}

// plain reports whether a switch only maps constants to something, like a switch over opcodes: it has a tag, each
// case is a literal or a name, and each body is at most one statement that does not branch.
func plain(s *ast.SwitchStmt) bool {
	if s.Tag == nil {
		return false
	}
	for _, c := range s.Body.List {
		c := c.(*ast.CaseClause)
		for _, e := range c.List {
			if !constant(e) {
				return false
			}
		}
		switch {
		case len(c.Body) > 1:
			return false
		case len(c.Body) == 1:
			switch c.Body[0].(type) {
			case *ast.ReturnStmt, *ast.AssignStmt, *ast.ExprStmt, *ast.BranchStmt, *ast.IncDecStmt:
			default:
				return false
			}
		}
	}
	return true
}

// constant reports whether an expression looks like a constant: nothing is type-checked, so that the files
// of every system can be measured. Constants are not distinguished from variables; a switch whose cases are
// variables is rare.
func constant(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit, *ast.Ident:
		return true
	case *ast.SelectorExpr:
		_, ok := e.X.(*ast.Ident)
		return ok
	case *ast.UnaryExpr:
		return constant(e.X)
	case *ast.BinaryExpr:
		return constant(e.X) && constant(e.Y)
	case *ast.ParenExpr:
		return constant(e.X)
	default:
		return false
	}
}
