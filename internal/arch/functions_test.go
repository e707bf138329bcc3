package arch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/arch/measure"
)

// longFunctions are the functions that exceed a limit of package measure: plain switches over opcodes or kinds of work
// requests. The list may only shrink.
var longFunctions = []string{
	"rdmap/deliver.go upper.Untagged",
	"rdmap/stream.go Request.prepare",
}

// checkFunctions finds functions that exceed a limit without an exception, and exceptions without such a function.
func checkFunctions(files []*measure.File, except []string) []string {
	var wrong []string
	needed := make(map[string]bool)
	for _, f := range measure.FuncsOver(files) {
		name := f.File + " " + f.Name
		needed[name] = true
		if !slices.Contains(except, name) {
			wrong = append(wrong, fmt.Sprintf("%s: %d lines and a cyclomatic number of %d, where %d and %d are the most",
				name, f.Lines, f.Cyclomatic, measure.MaxLines, measure.MaxCyclomatic))
		}
	}
	for _, name := range except {
		if !needed[name] {
			wrong = append(wrong, name+": an exception that is not needed any more")
		}
	}
	return wrong
}

func TestFunctionsAreShort(t *testing.T) {
	require.Empty(t, checkFunctions(tree(t), longFunctions))
}

func TestFunctionRuleCanFail(t *testing.T) {
	branches := func(n int) string {
		return "package a\nfunc (t *T[K]) f(a bool) {" + strings.Repeat("if a {};", n) + "}"
	}
	lines := func(n int) string { return "package a\nfunc f() {" + strings.Repeat("\n", n-1) + "}" }
	for _, c := range []struct{ name, src, except, want string }{
		{"a.go", lines(60), "", ""},
		{"a.go", lines(61), "", "a.go f: 61 lines and a cyclomatic number of 1, where 60 and 15 are the most"},
		{"a.go", lines(61), "a.go f", ""},
		{"a.go", lines(60), "a.go f", "a.go f: an exception that is not needed any more"},
		{"a_test.go", lines(61), "", ""},
		{"b/a.go", branches(14), "", ""},
		{"b/a.go", branches(15), "", "b/a.go T.f: 1 lines and a cyclomatic number of 16, where 60 and 15 are the most"},
		{"b/a.go", branches(15), "b/a.go T.f", ""},
	} {
		var except []string
		if c.except != "" {
			except = []string{c.except}
		}
		wrong := checkFunctions([]*measure.File{parse(t, c.name, c.src)}, except)
		require.Equal(t, c.want, strings.Join(wrong, "\n"), c.src)
	}
}
