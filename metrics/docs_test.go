package metrics

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the table in docs/metrics.md")

const begins, ends = "<!-- table: go test ./metrics -update -->\n", "<!-- end of the table -->\n"

// table returns the table of the document.
func table() string {
	var b strings.Builder
	b.WriteString("| metric | kind | labels | meaning |\n|---|---|---|---|\n")
	for _, m := range all {
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s |\n", m.name, m.kind, strings.Join(m.labels, "`, `"), m.help)
	}
	return b.String()
}

// TestDocumentHasEachMetric: docs/metrics.md has the table that package metrics makes.
func TestDocumentHasEachMetric(t *testing.T) {
	path := filepath.Join("..", "docs", "metrics.md")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := bytes.Cut(text, []byte(begins))
	require.True(t, ok)
	_, after, ok := bytes.Cut(rest, []byte(ends))
	require.True(t, ok)
	want := string(before) + begins + table() + ends + string(after)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "go test ./metrics -update")
}

// TestDocumentHasEachLabel: the table of labels in docs/metrics.md lists the labels of all metrics, and no others.
func TestDocumentHasEachLabel(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "metrics.md"))
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "| label | values |\n|---|---|\n")
	require.True(t, ok)
	rows, _, ok := strings.Cut(rest, "\n\n")
	require.True(t, ok)
	documented, exported := map[string]bool{}, map[string]bool{}
	for row := range strings.Lines(rows) {
		labels, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for label := range strings.SplitSeq(labels, ",") {
			documented[strings.Trim(label, " `")] = true
		}
	}
	for _, m := range all {
		for _, label := range m.labels {
			exported[label] = true
		}
	}
	require.Equal(t, exported, documented)
}

var metricName = regexp.MustCompile(`iwarp_[a-z0-9_]+`)

// exists reports whether a query may use a name.
func exists(name string) bool {
	for _, m := range all {
		if name == m.name || m.kind == histogram && (name == m.name+"_bucket" || name == m.name+"_sum" || name == m.name+"_count") {
			return true
		}
	}
	return false
}

// TestDashboardAsksForMetricsThatExist, in each query, and only by labels that the metric has.
func TestDashboardAsksForMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	require.NotEmpty(t, dashboard.Panels)
	for _, p := range dashboard.Panels {
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			names := metricName.FindAllString(target.Expr, -1)
			require.NotEmpty(t, names, "%s: %s", p.Title, target.Expr)
			for _, name := range names {
				require.True(t, exists(name), "%s: %s", p.Title, name)
			}
			for _, by := range grouping.FindAllStringSubmatch(target.Expr, -1) {
				for label := range strings.SplitSeq(by[1], ",") {
					label = strings.TrimSpace(label)
					require.True(t, hasLabel(names[0], label), "%s: %s has no label %s", p.Title, names[0], label)
				}
			}
		}
	}
}

// grouping is how a query names the labels that it keeps.
var grouping = regexp.MustCompile(`by \(([^)]*)\)`)

// hasLabel reports whether the metric of a name in a query has a label.
func hasLabel(name, label string) bool {
	return slices.ContainsFunc(all, func(m *metric) bool {
		bucket := m.kind == histogram && name == m.name+"_bucket"
		return (name == m.name || bucket) && (slices.Contains(m.labels, label) || bucket && label == "le")
	})
}

// TestHardeningNamesMetricsThatExist: the document names the metrics to watch as they are exported.
func TestHardeningNamesMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "hardening.md"))
	require.NoError(t, err)
	names := metricName.FindAllString(string(text), -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		require.True(t, exists(name), name)
	}
}
