package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"

	"github.com/goiwarp/iwarp/internal/arch/measure"
)

// scanTests finds the tests of the tree that show requirements. The result maps
// a requirement to the tests that cite it, as "package.TestName", in the order of
// the tree.
func scanTests(root string) (map[string][]string, error) {
	found := make(map[string][]string)
	err := measure.Walk(root, ".go", func(name string, src []byte) error {
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		return addTests(found, packageName(path.Dir(name)), src)
	})
	return found, err
}

// packageName returns the name that the report uses for the package in a directory of the module.
func packageName(dir string) string {
	if dir == "." {
		return "iwarp"
	}
	return dir
}

// addTests adds the tests of one file.
func addTests(found map[string][]string, pkg string, src []byte) error {
	f, err := parser.ParseFile(token.NewFileSet(), pkg, src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, decl := range f.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv != nil {
			continue
		}
		for _, id := range citedBy(fn.Name.Name) {
			found[id] = append(found[id], pkg+"."+fn.Name.Name)
		}
	}
	return nil
}

// citedBy lists the requirements that a test of that name shows: those whose series and
// numbers begin the name. A series that does not exist is a mistake in the name.
func citedBy(name string) []string {
	rest, ok := strings.CutPrefix(name, "Test")
	if !ok {
		return nil
	}
	var ids []string
	series := ""
	words := strings.Split(rest, "_")
	for i, word := range words {
		switch {
		case isSeries(word), inCapitals(word) && i+1 < len(words) && isNumber(words[i+1]):
			series = word
		case series != "" && isNumber(word):
			ids = append(ids, series+"-"+word)
		default:
			return ids
		}
	}
	return ids
}

func isSeries(word string) bool {
	return slices.ContainsFunc(documents, func(d document) bool { return d.prefix == word })
}

// inCapitals reports whether a word could be a series.
func inCapitals(word string) bool {
	return len(word) > 1 && word == strings.ToUpper(word) && !isNumber(word)
}

func isNumber(word string) bool {
	return word != "" && strings.Trim(word, "0123456789") == ""
}
