package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// sound returns a small ledger without problems, which tests then spoil.
func sound() *ledger {
	l := &ledger{tests: map[string][]string{}, mutated: map[string]bool{}, unmutable: map[string]string{}, exceptions: map[string]string{}}
	for _, n := range []string{"1", "2", "3"} {
		id := "DDP-" + n
		l.requirements = append(l.requirements, requirement{id: id, prefix: "DDP", source: "RFC 5041, 3", level: "MUST", text: "Text of a_b."})
		l.tests[id] = []string{"ddp.TestDDP_" + n + "_Words"}
		l.mutated[id] = true
	}
	return l
}

func TestSoundLedgerHasNoProblems(t *testing.T) {
	require.Empty(t, sound().problems())
}

func TestEveryProblemIsNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*ledger)
		want  string
	}{
		"in neither":        {func(l *ledger) { delete(l.tests, "DDP-2") }, "DDP-2 has neither"},
		"in both":           {func(l *ledger) { l.exceptions["DDP-2"] = "why" }, "DDP-2 has a test and an exception"},
		"unknown test":      {func(l *ledger) { l.tests["DDP-99"] = []string{"ddp.TestDDP_99"} }, "DDP-99 is cited by ddp.TestDDP_99"},
		"no planted defect": {func(l *ledger) { delete(l.mutated, "DDP-2") }, "DDP-2 has no planted defect"},
		"unknown defect":    {func(l *ledger) { l.mutated["ABC-1"] = true }, "ABC-1 has a planted defect"},
		"unknown series":    {func(l *ledger) { l.tests["TLS-5"] = []string{"ddp.TestTLS_5"} }, "TLS-5 is cited by ddp.TestTLS_5"},
		"unknown reason":    {func(l *ledger) { l.unmutable["DDP-98"] = "why" }, "DDP-98 has a reason"},
		"unknown exception": {func(l *ledger) { l.exceptions["MPA-88"] = "why" }, "MPA-88 has an exception"},
		"too many exceptions": {func(l *ledger) {
			delete(l.tests, "DDP-2")
			l.exceptions["DDP-2"] = "why"
		}, "1 of 3 mandatory"},
	} {
		t.Run(name, func(t *testing.T) {
			l := sound()
			c.spoil(l)
			require.Contains(t, strings.Join(l.problems(), "\n"), c.want)
		})
	}
}

func TestUnfinishedSeries(t *testing.T) {
	l := sound()
	for i := range l.requirements {
		l.requirements[i].unfinished = true
	}
	require.Equal(t, []string{"DDP is marked as unfinished, and no row is missing: drop the mark"}, l.problems())
	delete(l.tests, "DDP-2")
	require.Empty(t, l.problems(), "a row that is missing is no problem")
	require.Contains(t, string(l.report()), "| **missing** |")
}

func TestReportShowsTestsReasonsAndGaps(t *testing.T) {
	l := sound()
	delete(l.tests, "DDP-2")
	l.exceptions["DDP-2"] = "done by the host"
	delete(l.tests, "DDP-3")
	got := string(l.report())
	require.Contains(t, got, "| DDP-1 | RFC 5041, 3 | MUST | Text of a\\_b. | `ddp.TestDDP_1_Words` |")
	require.Contains(t, got, "| exception: done by the host |")
	require.Contains(t, got, "| **missing** |")
	require.Contains(t, got, "| all | 3 | 1 | 1 | 0 | 1 | 1 |")
	require.Contains(t, got, "33.3 % (limit 3 %)")
}

func TestNamesCiteRequirements(t *testing.T) {
	for name, want := range map[string][]string{
		"TestMPA_12_ReservedIsZero":       {"MPA-12"},
		"TestMPA2_1_AcceptsRevisionOne":   {"MPA2-1"},
		"TestDDP_64_65_66_QueueChecks":    {"DDP-64", "DDP-65", "DDP-66"},
		"TestRDMAP_134":                   {"RDMAP-134"},
		"TestMPA_60_512OctetsOfData":      {"MPA-60"},
		"TestMPA_Framing":                 nil,
		"TestDDPQueues":                   nil,
		"BenchmarkDDP_1_Not":              nil,
		"TestTLS_5_NoSeries":              {"TLS-5"},
		"TestDDP_12_SCE_5_Misspelt":       {"DDP-12", "SCE-5"},
		"TestTLS_IsNoSeries":              nil,
		"TestDDP_12_3_SEC_5_BoundsOf8":    {"DDP-12", "DDP-3", "SEC-5"},
		"TestRDMAP_114_VERBS_67":          {"RDMAP-114", "VERBS-67"},
		"TestDDP_Framing_12":              nil,
		"TestDDP_12_Framing_SEC_5":        {"DDP-12"},
		"TestMPA_9_10_PadZeroAndTolerant": {"MPA-9", "MPA-10"},
	} {
		require.Equal(t, want, citedBy(name), name)
	}
}

func TestTestsAreFoundInTheTree(t *testing.T) {
	root := t.TempDir()
	write := func(name, src string) {
		p := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, []byte(src), 0o644))
	}
	write("qp_test.go", "package iwarp\nfunc TestRDMAP_5_Root(t *testing.T) {}\n")
	write("ddp/a_test.go", "package ddp\nfunc TestDDP_1_2_Two(t *testing.T) {}\ntype x int\nfunc (x) TestDDP_3_Method() {}\n")
	write("ddp/a.go", "package ddp\nfunc TestDDP_4_NotATestFile() {}\n")
	write("ddp/testdata/b_test.go", "this is not Go")
	found, err := scanTests(root)
	require.NoError(t, err)
	require.Equal(t, map[string][]string{
		"RDMAP-5": {"iwarp.TestRDMAP_5_Root"},
		"DDP-1":   {"ddp.TestDDP_1_2_Two"},
		"DDP-2":   {"ddp.TestDDP_1_2_Two"},
	}, found)
}

func TestExceptionLines(t *testing.T) {
	got, err := parseExceptions("# Title\n\nProse about DDP-8.\n* DDP-8 — a TCP connection has one stream\nMPA-87 — done by the host\n")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"DDP-8": "a TCP connection has one stream", "MPA-87": "done by the host"}, got)

	_, err = parseExceptions("* DDP-8 - a hyphen\n")
	require.ErrorContains(t, err, "want")
	_, err = parseExceptions("* DDP-8 — a\n* DDP-8 — b\n")
	require.ErrorContains(t, err, "twice")
}

func TestRequirementListsAreWhole(t *testing.T) {
	_, err := requirements()
	require.NoError(t, err)
	require.NoError(t, checkFiles(fstest.MapFS{"requirements/ddp.txt": {}}))
	require.EqualError(t, checkFiles(fstest.MapFS{"requirements/ddp.txt": {}, "requirements/abc.txt": {}}),
		"requirements/abc.txt belongs to no series: add a row to documents, in internal/conformance/requirement.go")

	d := document{prefix: "DDP", count: 2}
	_, err = parseRequirements(d, "DDP-1 | RFC 5041, 3 | MUST | a\nDDP-3 | RFC 5041, 3 | MUST | b\n")
	require.ErrorContains(t, err, "DDP-2", "a gap in the numbers is an error")
	_, err = parseRequirements(d, "DDP-1 | RFC 5041, 3 | MUST | a\n")
	require.ErrorContains(t, err, "got 1", "a missing line is an error")
}
