package perf

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func exampleRows() []row {
	goals := []goal{ratioAtLeast("write_1m", throughput, 0.97), valueAtMost("allocs_write_1m", allocs, 0.005)}
	rows := []row{
		{Case: "write_1m", Metric: "throughput", Unit: "GB/s", Value: new(5.5), Baseline: "tcp", BaselineValue: new(5.0), Ratio: new(1.1), Pairs: 9},
		{Case: "allocs_write_1m", Metric: "allocs", Unit: "1/op", Value: new(2.0), Pairs: 9},
	}
	for i := range goals {
		goals[i].judge(&rows[i])
	}
	return append(rows, row{Case: "gone", Metric: "p50", Unit: "us"})
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, (&options{}).print(&b, exampleRows()))
	lines := strings.Split(b.String(), "\n")
	require.Equal(t, []string{"write_1m", "throughput", "5.50", "GB/s", "tcp", "5.00", "GB/s", "1.10", "9", ">=", "0.97", "yes"}, strings.Fields(lines[1]))
	require.Equal(t, []string{"allocs_write_1m", "allocs", "2.00", "1/op", "9", "<=", "0.005", "NO"}, strings.Fields(lines[2]))
	require.Equal(t, []string{"gone", "p50", "-", "0"}, strings.Fields(lines[3]))

	b.Reset()
	require.NoError(t, (&options{}).print(&b, exampleRows()[2:]))
	require.Equal(t, "case metric value baseline ratio pairs gone p50 - 0", strings.Join(strings.Fields(b.String()), " "), "no columns for targets that there are not")
}

// TestQuantity: small and large values have a suitable unit.
func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		value float64
		unit  string
		want  string
	}{
		{0.0008, "Mops/s", "800 ops/s"},
		{0.0123, "Mops/s", "12.3 kops/s"},
		{1.25, "Mops/s", "1.25 Mops/s"},
		{0, "Mops/s", "0 Mops/s"},
		{5.5, "GB/s", "5.50 GB/s"},
		{0.0512, "GB/s", "51.2 MB/s"},
		{0.00005, "GB/s", "50.0 kB/s"},
		{8.25, "us", "8.25 us"},
		{25_000, "us", "25.0 ms"},
		{2e7, "us", "20.0 s"},
		{0.05, "us", "50.0 ns"},
		{0.0008, "1/op", "0.0008 1/op"},
	} {
		require.Equal(t, c.want, quantity(&c.value, c.unit))
	}
	require.Equal(t, "-", quantity(nil, "us"))
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, (&options{json: true}).print(&b, exampleRows()))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Len(t, lines, 3, "one object a line")
	require.Equal(t, `{"case":"write_1m","metric":"throughput","value":5.5,"unit":"GB/s","baseline":"tcp",`+
		`"baseline_value":5,"ratio":1.1,"target":0.97,"met":true,"pairs":9}`, lines[0], "the documented fields in their order")
	var gone map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[2]), &gone))
	require.Nil(t, gone["value"], "what is not known is null")
	require.Contains(t, gone, "target")
}

func TestReport(t *testing.T) {
	points := []measured{
		{workload{Op: opWrite, Size: 64}, []row{{Metric: "throughput", Value: new(1.0), BaselineValue: new(2.0), Ratio: new(0.5), Baseline: "tcp"}}},
		{workload{Op: opWrite, Size: 4096}, []row{{Metric: "throughput", Value: new(3.0), BaselineValue: new(4.0), Ratio: new(0.75), Baseline: "tcp"}}},
		{workload{Op: opRead, Size: 64}, []row{{Metric: "p50", Value: new(30.0), Ratio: new(2.0)}, {Metric: "p99", Value: new(60.0)}, {Metric: "p99.9", Value: new(90.0)}}},
	}
	var b bytes.Buffer
	require.NoError(t, writeReport(&b, [][2]string{{"Host", "<here>"}}, append(exampleRows(), row{Case: "slow", Metric: "rate", Unit: "Mops/s", Value: new(0.0008)}), points))
	page := b.String()
	require.Equal(t, 4, strings.Count(page, "<svg"), "throughput, its ratio, latency, its ratio")
	require.Contains(t, page, "&lt;here&gt;", "text is escaped")
	require.Contains(t, page, "tcp write", "the baseline has its line")
	require.Contains(t, page, `class="text missed">no<`, "missed targets show")
	require.Contains(t, page, `5.50 GB/s</td><td class="text ">tcp</td><td class=" ">5.00 GB/s</td>`, "a value has its unit, as in the table of the text")
	require.Contains(t, page, ">800 ops/s</td>", "and one that is easy to read")
	b.Reset()
	require.NoError(t, writeReport(&b, nil, exampleRows()[2:], nil))
	require.NotContains(t, b.String(), "<th>target</th>", "there is none")
	for _, outside := range []string{"http:", "https:", "src=", "@import"} {
		require.NotContains(t, page, outside, "the page needs nothing else")
	}
}

// TestTargetsHaveFewDigits, even if they are the inverse of another number.
func TestTargetsHaveFewDigits(t *testing.T) {
	for bound, want := range map[float64]string{1 / 0.99: ">= 1.01", 0.97: ">= 0.97", 0.005: ">= 0.005", 60: ">= 60"} {
		require.Equal(t, want, row{Target: &bound}.target())
	}
}
