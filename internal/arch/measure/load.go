package measure

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Package is a package without its tests, parsed and type-checked as on linux/amd64.
type Package struct {
	Path   string
	Module string // the path of its module
	Asked  bool   // named by the patterns of Load, and not only imported
	Fset   *token.FileSet
	Files  []*ast.File
	Types  *types.Package
	Info   *types.Info
}

// Below returns the path of the package below its module, "." for the root.
func (p *Package) Below() string {
	return cmp.Or(strings.TrimPrefix(strings.TrimPrefix(p.Path, p.Module), "/"), ".")
}

// Methods returns how many methods a type has, and in how many files, or 0, 0 if there is no such type.
func (p *Package) Methods(typeName string) (methods, files int) {
	o, ok := p.Types.Scope().Lookup(typeName).(*types.TypeName)
	if !ok {
		return 0, 0
	}
	in := make(map[string]bool)
	t := o.Type().(*types.Named)
	for m := range t.Methods() {
		in[p.file(m.Pos())] = true
	}
	return t.NumMethods(), len(in)
}

// file returns the base name of the file that contains pos.
func (p *Package) file(pos token.Pos) string { return filepath.Base(p.Fset.Position(pos).Filename) }

// listed is what the go command reports about a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Standard, DepOnly       bool
	Module                  *struct {
		Path string
		Main bool
	}
}

// Load type-checks the packages that patterns name, and all packages of their module that they import.
// Imports come before their importers. Packages of other modules are read as export data of the
// compiler. The go command runs in dir.
func Load(dir string, patterns ...string) ([]*Package, error) {
	all, err := list(dir, patterns)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	imp := &sourceFirst{checked: make(map[string]*types.Package)}
	export := make(map[string]string)
	imp.others = importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if export[path] == "" {
			return nil, errors.New("no export data of " + path)
		}
		return os.Open(export[path])
	})
	var packages []*Package
	for _, l := range all {
		if l.Module == nil || !l.Module.Main {
			export[l.ImportPath] = l.Export
			continue
		}
		p, err := check(fset, imp, l)
		if err != nil {
			return nil, err
		}
		imp.checked[p.Path] = p.Types
		packages = append(packages, p)
	}
	return packages, nil
}

// list asks the go command for the packages and their imports, imports first.
func list(dir string, patterns []string) ([]listed, error) {
	cmd := exec.Command("go", append([]string{
		"list", "-deps", "-export",
		"-json=ImportPath,Dir,Export,GoFiles,Standard,DepOnly,Module", "--",
	}, patterns...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var l listed
		switch err := d.Decode(&l); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, l)
	}
}

// check parses and type-checks one package.
func check(fset *token.FileSet, imp types.Importer, l listed) (*Package, error) {
	p := &Package{Path: l.ImportPath, Module: l.Module.Path, Asked: !l.DepOnly, Fset: fset, Info: &types.Info{
		Defs: make(map[*ast.Ident]types.Object),
		Uses: make(map[*ast.Ident]types.Object),
	}}
	for _, name := range l.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.Files = append(p.Files, f)
	}
	cfg := types.Config{Importer: imp, Sizes: types.SizesFor("gc", "amd64")}
	var err error
	p.Types, err = cfg.Check(l.ImportPath, fset, p.Files, p.Info)
	return p, err
}

// sourceFirst imports packages that were type-checked already, and otherwise export data.
type sourceFirst struct {
	checked map[string]*types.Package
	others  types.Importer
}

func (s *sourceFirst) Import(path string) (*types.Package, error) {
	if p := s.checked[path]; p != nil {
		return p, nil
	}
	return s.others.Import(path)
}
