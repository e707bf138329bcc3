package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/mutate/list"
)

// TestTheListStillApplies keeps the list from rotting: each place is there, once,
// and each test exists and cites the requirement.
func TestTheListStillApplies(t *testing.T) {
	root := filepath.Join("..", "..")
	all, err := list.Load()
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all.Mutations), 100)
	tests := make(map[string]map[string]bool)
	var stale []string
	for _, m := range all.Mutations {
		if tests[m.Pkg] == nil {
			tests[m.Pkg] = testsOf(t, filepath.Join(root, filepath.FromSlash(m.Pkg)))
		}
		src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.File)))
		require.NoError(t, err, m.ID)
		changed, err := m.Apply(string(src))
		switch {
		case err != nil:
			stale = append(stale, err.Error())
		case changed == string(src):
			stale = append(stale, m.ID+": it changes nothing")
		case !tests[m.Pkg][m.Test]:
			stale = append(stale, m.ID+": there is no "+m.Test+" in "+m.Pkg)
		case m.HasRequirement() && !cites(m.Test, m.Requirement()):
			stale = append(stale, m.ID+": "+m.Test+" does not cite the requirement")
		}
	}
	require.Empty(t, stale)
}

// testsOf lists the tests of one package.
func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	found := make(map[string]bool)
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				found[fn.Name.Name] = true
			}
		}
	}
	return found
}

// cites tells whether the name of a test cites the requirement:
// TestDDP_64_65_SEC_5_Words cites DDP-64, DDP-65 and SEC-5.
func cites(test, requirement string) bool {
	rest, _ := strings.CutPrefix(test, "Test")
	series := ""
	for word := range strings.SplitSeq(rest, "_") {
		switch {
		case series+"-"+word == requirement:
			return true
		case strings.Trim(word, "0123456789") == "": // another number
		case strings.ToUpper(word) == word:
			series = word
		default:
			return false
		}
	}
	return false
}

func TestCites(t *testing.T) {
	require.True(t, cites("TestDDP_64_65_Words", "DDP-65"))
	require.True(t, cites("TestDDP_64", "DDP-64"))
	require.False(t, cites("TestDDP_64_65_Words", "DDP-6"))
	require.False(t, cites("TestDDP_64_Words_65", "DDP-65"))
	require.False(t, cites("TestMPA_1_Words", "MPA2-1"))
	require.True(t, cites("TestDDP_64_SEC_5_Words", "SEC-5"))
	require.False(t, cites("TestDDP_64_SEC_5_Words", "SEC-64"))
}

func TestChoose(t *testing.T) {
	pick := func(o options) []list.Mutation {
		var ms []list.Mutation
		for c := 'a'; c <= 'z'; c++ {
			ms = append(ms, list.Mutation{ID: "MPA-1" + string(c)})
		}
		chosen, err := choose(ms, o)
		require.NoError(t, err)
		return chosen
	}
	one := pick(options{sample: 5, seed: 7})
	require.Len(t, one, 5)
	require.Equal(t, one, pick(options{sample: 5, seed: 7}))
	require.NotEqual(t, one, pick(options{sample: 5, seed: 8}))
	require.Len(t, pick(options{}), 26)
	require.Len(t, pick(options{sample: 100}), 26)
	require.Equal(t, []list.Mutation{{ID: "MPA-1a"}, {ID: "MPA-1b"}}, pick(options{id: "MPA-1[ab]"}))

	_, err := choose([]list.Mutation{{ID: "MPA-12a"}}, options{id: "MPA-1"})
	require.Error(t, err, "the whole id has to match")
	_, err = choose([]list.Mutation{{ID: "MPA-12a"}}, options{id: "("})
	require.Error(t, err)
}

func TestOnlyNoticedMutationsPass(t *testing.T) {
	var b bytes.Buffer
	m := list.Mutation{ID: "MPA-1a", File: "mpa/x.go", Pkg: "mpa", Test: "TestMPA_1_One", Old: "a", New: "b"}
	ends := func(results ...result) bool {
		b.Reset()
		r := newReport(&b)
		for _, res := range results {
			r.add(res)
		}
		return r.end(time.Second)
	}
	require.True(t, ends(result{m: m, verdict: noticed}))
	require.False(t, ends(result{m: m, verdict: noticed}, result{m: m, verdict: survived}))
	require.False(t, ends(result{m: m, verdict: bad, output: "it does not compile"}))
	require.Contains(t, b.String(), "it does not compile")
	require.Contains(t, b.String(), "1 mutations, 0 noticed, 0 survived, 1 bad")
}

// TestRunnerTellsTheVerdictsApart runs the whole tool over a module of a few lines.
func TestRunnerTellsTheVerdictsApart(t *testing.T) {
	root := t.TempDir()
	for name, src := range map[string]string{
		"go.mod":      "module example.com/m\n\ngo 1.25\n",
		"n/go.mod":    "module example.com/m/n\n\ngo 1.25\n",
		"p/p.go":      "package p\n\nfunc Min(a, b int) int {\n\tif a < b {\n\t\treturn a\n\t}\n\treturn b\n}\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestMin(t *testing.T) {\n\tif Min(1, 2) != 1 {\n\t\tt.Fatal(\"not the smaller\")\n\t}\n}\n\nfunc TestBroken(t *testing.T) { t.Fatal(\"always\") }\n",
	} {
		p := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, []byte(src), 0o644))
	}
	m := func(id, test, old, new string) list.Mutation {
		return list.Mutation{ID: id, File: "p/p.go", Pkg: "p", Test: test, Old: old, New: new}
	}
	results := make(map[string]result)
	err := newRunner(t.Context(), root).run([]list.Mutation{
		m("MPA-1a", "TestMin", "a < b", "a > b"),
		m("MPA-1b", "TestMin", "a < b", "a <= b"),
		m("MPA-1c", "TestMin", "a < b", "a < c"),
		m("MPA-1d", "TestNone", "a < b", "a > b"),
		m("MPA-1e", "TestBroken", "a < b", "a > b"),
		m("MPA-1f", "TestMin", "a == b", "a > b"),
	}, func(res result) { results[res.m.ID] = res })
	require.NoError(t, err)
	verdicts := make(map[string]verdict)
	for id, res := range results {
		verdicts[id] = res.verdict
	}
	require.Equal(t, map[string]verdict{
		"MPA-1a": noticed, "MPA-1b": survived, "MPA-1c": bad, "MPA-1d": bad, "MPA-1e": bad, "MPA-1f": bad,
	}, verdicts)
	require.Contains(t, results["MPA-1c"].output, "does not compile")
	require.Contains(t, results["MPA-1d"].output, "did not run")
	require.Contains(t, results["MPA-1e"].output, "fails without the mutation")
	require.Contains(t, results["MPA-1f"].output, "does not occur")
}
