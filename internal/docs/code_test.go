package docs

import (
	"bytes"
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
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// sources returns the block as files, in the order to try: as it is, as declarations after the prelude, and as a
// function body after it.
func (b *block) sources(prelude string) []string {
	head := "package block\n" + prelude
	if strings.Contains("\n"+b.text, "\npackage ") {
		return []string{b.text}
	}
	return []string{head + "\n" + b.text, head + "\nfunc _() {\n" + b.text + "}\n"}
}

// parsed parses the first of sources that is a valid file.
func (b *block) parsed(fset *token.FileSet, name, prelude string) (*ast.File, error) {
	var first, last error
	for _, src := range b.sources(prelude) {
		f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if err == nil {
			return f, nil
		}
		if first == nil {
			first = err
		}
		last = err
	}
	return nil, errors.Join(first, last)
}

// hardErrors returns the type errors in f. Unused variables and imports are not errors here: a block is part of a
// program.
func hardErrors(fset *token.FileSet, f *ast.File, imports types.Importer) (hard []error) {
	cfg := types.Config{Importer: imports, Error: func(err error) {
		var e types.Error
		if !errors.As(err, &e) || !e.Soft {
			hard = append(hard, err)
		}
	}}
	_, _ = cfg.Check("block", fset, []*ast.File{f}, nil) // Error gets the errors
	return hard
}

// compiled asks the go command, once, for the export data of the packages that the prelude imports, and of their
// dependencies. It returns files by package path.
var compiled = sync.OnceValues(func() (map[string]string, error) {
	before, err := os.ReadFile(filepath.Join("testdata", "prelude.txt"))
	if err != nil {
		return nil, err
	}
	f, err := parser.ParseFile(token.NewFileSet(), "", "package block\n"+string(before), parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Export"}
	for _, imp := range f.Imports {
		args = append(args, strings.Trim(imp.Path.Value, `"`))
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	files := make(map[string]string)
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		files[p.ImportPath] = p.Export
	}
	return files, nil
})

// exported returns an importer of the compiled packages that the prelude imports.
func exported(t *testing.T, fset *token.FileSet) types.Importer {
	t.Helper()
	files, err := compiled()
	require.NoError(t, err)
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		file, ok := files[path]
		if !ok {
			return nil, fmt.Errorf("testdata/prelude.txt does not import %s", path)
		}
		return os.Open(file)
	})
}

func prelude(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "prelude.txt"))
	require.NoError(t, err)
	return string(text)
}

func TestBlocksOfGoCompile(t *testing.T) {
	before := prelude(t)
	fset := token.NewFileSet()
	var files []*ast.File
	var names []string
	for _, d := range everyDocument(t) {
		for _, b := range d.blocks {
			if strings.Fields(b.info + " -")[0] != "go" || strings.Contains(b.info, "file=") {
				continue
			}
			name := fmt.Sprintf("%s:%d", d.path, b.line)
			f, err := b.parsed(fset, name, before)
			require.NoError(t, err, name)
			files, names = append(files, f), append(names, name)
		}
	}
	require.NotEmpty(t, files)
	imports := exported(t, fset)
	for i, f := range files {
		require.Empty(t, hardErrors(fset, f, imports), "the block of %s", names[i])
	}
}

func TestBlocksThatDoNotCompileAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"x := qp.Err()\n":                0, // not used, which is no error in a part
		"x := qp.Missing()\n":            1,
		"func f() error { return 1 }\n":  1,
		"package main\nfunc main() {}\n": 0,
	} {
		fset := token.NewFileSet()
		b := block{text: text}
		f, err := b.parsed(fset, "x", prelude(t))
		require.NoError(t, err)
		require.Len(t, hardErrors(fset, f, exported(t, fset)), want, text)
	}
	_, err := (&block{text: "x :=\n"}).parsed(token.NewFileSet(), "x", "")
	require.Error(t, err)
}

// TestQuotationsAreTheSource: blocks with file=PATH are parts of that file, in its order, and together cover all of it.
func TestQuotationsAreTheSource(t *testing.T) {
	quotations := 0
	for _, d := range everyDocument(t) {
		quoted := make(map[string]string)
		for _, b := range d.blocks {
			_, file, ok := strings.Cut(b.info, "file=")
			if ok {
				quoted[file] += "\n" + b.text
				quotations++
			}
		}
		for file, text := range quoted {
			source, err := os.ReadFile(filepath.Join(root, filepath.Dir(filepath.FromSlash(d.path)), filepath.FromSlash(file)))
			require.NoError(t, err, d.path)
			require.Equal(t, lines(string(source)), lines(text), "%s quotes %s", d.path, file)
		}
	}
	require.NotZero(t, quotations)
}

// lines returns the non-empty lines of s.
func lines(s string) []string {
	return slices.DeleteFunc(strings.Split(s, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
}
