package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A target is a fuzz function.
type target struct {
	name string // in the ledger: the directory of its package, a dot, and the function
	dir  string // of its package
	pkg  string // the directory below the root, with slashes
	fn   string
}

var fuzzFunc = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(`)

// find returns the targets below root that match only, in the order of their names.
func find(root string, only *regexp.Regexp) (targets []target, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		names, err := functions(path)
		for _, fn := range names {
			dir := filepath.Dir(path)
			pkg, err := filepath.Rel(root, dir)
			if err != nil {
				return err
			}
			t := target{dir: dir, pkg: filepath.ToSlash(pkg), fn: fn}
			if t.name = t.pkg + "." + fn; t.pkg == "." {
				t.name = "iwarp." + fn
			}
			if only.MatchString(t.name) {
				targets = append(targets, t)
			}
		}
		return err
	})
	slices.SortFunc(targets, func(a, b target) int { return strings.Compare(a.name, b.name) })
	return targets, err
}

// functions returns the names of the fuzz functions of a file.
func functions(path string) (names []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for _, m := range fuzzFunc.FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	return names, nil
}
