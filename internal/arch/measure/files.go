package measure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A File is one Go source file, whatever its build tags.
type File struct {
	Path string // below the root of the module, with slashes
	Src  []byte
	AST  *ast.File // with comments
	Fset *token.FileSet
}

// Package returns the directory of the file, "." for the root.
func (f *File) Package() string { return path.Dir(f.Path) }

// IsTest reports whether the file belongs to a test.
func (f *File) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Lines returns the length of the file.
func (f *File) Lines() int { return strings.Count(string(f.Src), "\n") }

// Imports lists the import paths.
func (f *File) Imports() []string {
	var ps []string
	for _, s := range f.AST.Imports {
		p, _ := strconv.Unquote(s.Path.Value) // the parser has checked the value
		ps = append(ps, p)
	}
	return ps
}

// LocalName returns the name that an import has in the file, "" if it is not imported.
func (f *File) LocalName(importPath string) string {
	for _, s := range f.AST.Imports {
		if s.Path.Value != strconv.Quote(importPath) {
			continue
		}
		if s.Name != nil {
			return s.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// Parse parses a file with the given text.
func Parse(fset *token.FileSet, name string, src []byte) (*File, error) {
	a, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	return &File{Path: name, Src: src, AST: a, Fset: fset}, err
}

// GoFiles reads the Go files of a module, in the order of their paths.
func GoFiles(root string) ([]*File, error) {
	fset := token.NewFileSet()
	var files []*File
	err := Walk(root, ".go", func(name string, src []byte) error {
		f, err := Parse(fset, name, src)
		files = append(files, f)
		return err
	})
	return files, err
}

// Walk reads the files of a module with the extension, in the order of their paths. It omits testdata,
// and directories whose names begin with a dot or an underscore.
func Walk(root, ext string, each func(name string, src []byte) error) error {
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); p != root && (name == "testdata" || name[0] == '.' || name[0] == '_') {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(p) != ext {
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		return each(filepath.ToSlash(rel), src)
	})
}

// Code returns how many lines of the file are neither empty nor only a comment.
func (f *File) Code() (n int) {
	for line := range strings.Lines(string(f.Src)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}

// Code counts the lines of code of the files that are not tests, by package.
func Code(files []*File) map[string]int {
	return count(files, (*File).Code)
}

// Lines counts the lines of the files that are not tests, by package.
func Lines(files []*File) map[string]int {
	return count(files, (*File).Lines)
}

func count(files []*File, lines func(*File) int) map[string]int {
	n := make(map[string]int)
	for _, f := range files {
		if !f.IsTest() {
			n[f.Package()] += lines(f)
		}
	}
	return n
}

// Longer lists the files of a package that have more than n lines and are not tests.
func Longer(files []*File, in string, n int) []string {
	var names []string
	for _, f := range files {
		if !f.IsTest() && f.Package() == in && f.Lines() > n {
			names = append(names, path.Base(f.Path))
		}
	}
	return slices.Sorted(slices.Values(names))
}
