package arch

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/arch/measure"
)

// A dependency is a row of docs/dependencies.md.
type dependency struct{ module, usedBy, licence string }

// A goMod holds the required parts of a go.mod file, as go mod edit prints it.
type goMod struct {
	Module  struct{ Path string }
	Require []struct {
		Path     string
		Indirect bool
	}
}

var dependencyRow = regexp.MustCompile("^\\| `([^`]+)` \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\|$")

// documented reads the rows of a module's section of the document.
func documented(t *testing.T, doc, of string) []dependency {
	t.Helper()
	_, section, found := strings.Cut(doc, "\n## "+of+"\n")
	require.True(t, found, "docs/dependencies.md has no section %q", of)
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []dependency
	for line := range strings.Lines(section) {
		if m := dependencyRow.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			rows = append(rows, dependency{m[1], m[2], m[3]})
		}
	}
	return rows
}

// parts are the parts of the project, in the order of the document, with their directories if they have any.
var parts = []struct {
	name string
	dirs []string
}{{"library", nil}, {"metrics", []string{"metrics"}}, {"tracing", []string{"tracing"}}, {"commands", []string{"cmd"}}, {"examples", []string{"examples"}}, {"lab", []string{"interop"}}, {"tests", nil}}

// partOf returns the part to which a file belongs. A package whose name ends in test is a helper of tests.
func partOf(f *measure.File) string {
	if f.IsTest() || under(f.Package(), testOnly) || strings.HasSuffix(f.Package(), "test") {
		return "tests"
	}
	for _, p := range parts {
		if under(f.Package(), p.dirs) {
			return p.name
		}
	}
	return "library"
}

// usersOf lists the parts that import a module.
func usersOf(files []*measure.File, module string) string {
	found := make(map[string]bool)
	for _, f := range files {
		if imports(f, module) {
			found[partOf(f)] = true
		}
	}
	var names []string
	for _, p := range parts {
		if found[p.name] {
			names = append(names, p.name)
		}
	}
	return strings.Join(names, ", ")
}

func imports(f *measure.File, module string) bool {
	return slices.ContainsFunc(f.Imports(), func(p string) bool { return under(p, []string{module}) })
}

// required reads the direct requirements of the module in a directory, except our own modules.
func required(t *testing.T, dir string) (of string, modules []string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	command.Dir = dir
	out, err := command.Output()
	require.NoError(t, err)
	var m goMod
	require.NoError(t, json.Unmarshal(out, &m))
	for _, r := range m.Require {
		if !r.Indirect && r.Path != module {
			modules = append(modules, r.Path)
		}
	}
	slices.Sort(modules)
	return m.Module.Path, modules
}

// TestDependenciesAreDocumented compares docs/dependencies.md with go.mod and the imports of each module.
func TestDependenciesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root, "docs", "dependencies.md"))
	require.NoError(t, err)
	nested, err := filepath.Glob(filepath.Join(root, "examples", "*", "go.mod"))
	require.NoError(t, err)
	for _, file := range append([]string{filepath.Join(root, "go.mod")}, nested...) {
		of, modules := required(t, filepath.Dir(file))
		files, err := measure.GoFiles(filepath.Dir(file))
		require.NoError(t, err)
		var want []dependency
		rows := documented(t, string(doc), of)
		for i, m := range modules {
			d := dependency{module: m, usedBy: usersOf(files, m)}
			if i < len(rows) {
				d.licence = rows[i].licence // see TestLicencesOfDependencies
			}
			want = append(want, d)
		}
		require.Equal(t, want, rows, "the section of %s", of)
	}
}

// licences are recognised by a part of their text.
var licences = map[string]string{
	"MIT":          "Permission is hereby granted, free of charge, to any person obtaining a copy",
	"Apache-2.0":   "Apache License\n                           Version 2.0",
	"BSD-3-Clause": "Neither the name of",
	"MPL-2.0":      "Mozilla Public License Version 2.0",
}

// TestLicencesOfDependencies reads the licences of the modules that the main module requires.
func TestLicencesOfDependencies(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root, "docs", "dependencies.md"))
	require.NoError(t, err)
	for _, row := range documented(t, string(doc), module) {
		// The cache of a new clone lacks modules that no test built so far needs.
		command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", row.module)
		command.Dir = root
		out, err := command.Output()
		require.NoError(t, err)
		var m struct{ Dir string }
		require.NoError(t, json.Unmarshal(out, &m))
		files, err := filepath.Glob(filepath.Join(m.Dir, "LICENSE*"))
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && licences[row.licence] != "" && strings.Contains(string(text), licences[row.licence])
		}), "%s in %q: its licence is not %q", row.module, files, row.licence)
	}
}
