package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const root = "../.."

func allTargets(t *testing.T) []target {
	t.Helper()
	targets, err := find(root, regexp.MustCompile(""))
	require.NoError(t, err)
	return targets
}

// TestTargetsAreFound: also the targets of nested modules.
func TestTargetsAreFound(t *testing.T) {
	var names []string
	for _, g := range allTargets(t) {
		names = append(names, g.name)
	}
	require.Subset(t, names, []string{"iwarp.FuzzStreams", "ddp.FuzzSegments", "examples/ninep/rdma9p.FuzzWrite"})
	require.IsIncreasing(t, names)
	some, err := find(root, regexp.MustCompile(`^ddp\.`))
	require.NoError(t, err)
	require.Less(t, len(some), 5)
}

// TestEachTargetHasAProperty: and each row of the ledger has a target.
func TestEachTargetHasAProperty(t *testing.T) {
	known, names := make(map[string]bool), make(map[string]bool)
	for _, p := range parseProperties() {
		require.False(t, known[p.pkg], "%s is there twice", p.pkg)
		known[p.pkg] = true
	}
	used := make(map[string]bool)
	for _, g := range allTargets(t) {
		pkg := strings.TrimSuffix(g.name, "."+g.fn)
		require.True(t, known[pkg], "%s has no line in properties.txt", pkg)
		used[pkg], names[g.name] = true, true
	}
	require.Equal(t, used, known, "lines of properties.txt that have no target")
	l, err := readLedger("ledger.txt")
	require.NoError(t, err)
	for name := range l {
		require.True(t, names[name], "%s is in the ledger, and no target", name)
	}
}

// TestDocsAreOfTheLedger: go run ./internal/fuzzing -docs updates the page.
func TestDocsAreOfTheLedger(t *testing.T) {
	l, err := readLedger("ledger.txt")
	require.NoError(t, err)
	old, renewed, err := docs(root, l)
	require.NoError(t, err)
	require.Equal(t, string(renewed), string(old))
}

func TestLedger(t *testing.T) {
	l := ledger{"b.FuzzB": {execs: 7, cpu: 1500 * time.Millisecond, inputs: 2}, "a.FuzzA": {execs: 1 << 40, findings: 1}}
	file := filepath.Join(t.TempDir(), "ledger")
	require.NoError(t, l.write(file))
	again, err := readLedger(file)
	require.NoError(t, err)
	require.Equal(t, l, again)
	none, err := readLedger(file + "2")
	require.NoError(t, err)
	require.Empty(t, none)
	_, err = parseLedger(strings.NewReader("a.FuzzA 1 2\n"))
	require.Error(t, err)

	targets := []target{{name: "a.FuzzA"}, {name: "b.FuzzB"}, {name: "c.FuzzC"}}
	require.Equal(t, "a.FuzzA", next(targets, l, nil).name)
	require.Equal(t, "c.FuzzC", next(targets, l, map[string]bool{"a.FuzzA": true}).name, "the least time")
	var out bytes.Buffer
	require.NoError(t, l.print(&out, targets))
	require.Contains(t, out.String(), "3 targets")
}

func TestWatch(t *testing.T) {
	stopped := make(chan struct{})
	w := watch{stalled: func() { close(stopped) }}
	w.alive()
	defer w.stop()
	_, _ = w.Write([]byte("fuzz: elapsed: 0s, gathering baseline coverage: 0/24 completed\nfuzz: elapsed: 3s, execs: 120 (40/sec), new interesting: 2 (total: 26)\n"))
	_, _ = w.Write([]byte("fuzz: elapsed: 6s, execs: 300 (60/sec), new interesting: 3 (total: 27)\nPASS\n"))
	require.Equal(t, result{execs: 300, inputs: 3}, w.progress())
	require.Empty(t, w.finding(nil, true))
	require.NotEmpty(t, w.finding(os.ErrClosed, false), "it has ended by itself")
	_, _ = w.Write([]byte("--- FAIL: FuzzA (0.02s)\n"))
	require.Contains(t, w.finding(nil, true), "FAIL")
	w.timer.Reset(0)
	<-stopped
	require.Contains(t, w.finding(nil, true), "nothing was executed")
}

func TestProfile(t *testing.T) {
	runs := parseProfile("mode: set\na.go:1.2,3.4 2 1\na.go:5.6,7.8 1 0\n")
	require.Equal(t, map[string]bool{"a.go:1.2,3.4": true}, runs)
	require.True(t, adds(map[string]bool{}, runs))
	require.False(t, adds(runs, runs))
}

// badTarget is a package with a target that fails.
var badTarget = strings.Join([]string{
	"package m", "import \"testing\"", "func FuzzBad(f *testing.F) {", "	f.Fuzz(func(t *testing.T, b byte) {", "		if b == 7 {", "			t.Fatal(\"seven\")", "		}", "	})", "}", "",
}, "\n")

// TestFindings: a failing target ends the program with an error, its input is kept, and the ledger records it. An
// interrupt is not an error.
func TestFindings(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.org/m\n\ngo 1.24\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "m_test.go"), []byte(badTarget), 0o644))
	o := options{root: dir, time: 10 * time.Minute, slice: 10 * time.Minute, only: regexp.MustCompile(""), ledger: filepath.Join(dir, "ledger")}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	require.NoError(t, run(interrupted, &out, o))
	require.ErrorContains(t, run(t.Context(), &out, o), "1 targets", out.String())
	require.Contains(t, out.String(), "seven")
	l, err := readLedger(o.ledger)
	require.NoError(t, err)
	require.Equal(t, int64(1), l["iwarp.FuzzBad"].findings)
	require.Positive(t, l["iwarp.FuzzBad"].execs)
	seeds, err := os.ReadDir(filepath.Join(dir, "testdata", "fuzz", "FuzzBad"))
	require.NoError(t, err)
	require.Len(t, seeds, 1)
}
