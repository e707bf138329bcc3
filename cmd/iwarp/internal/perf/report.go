package perf

import (
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/chart"
)

// measured is a workload and its results.
type measured struct {
	w    workload
	rows []row
}

// of returns the row of a metric, or an empty row.
func (m *measured) of(name string) row {
	if i := slices.IndexFunc(m.rows, func(r row) bool { return r.Metric == name }); i >= 0 {
		return m.rows[i]
	}
	return row{}
}

// writeReport writes a self-contained page.
func writeReport(w io.Writer, facts [][2]string, rows []row, points []measured) error {
	p := chart.Page{
		Title: "iwarp perf", Facts: facts, Charts: charts(points),
		Lead: "The library and the baseline ran in turn, in as many pairs as its column says. A value is the median of all runs, a ratio the median of the ratios within the pairs. " + legend,
		Head: []string{"case", "metric", "value", "baseline", "its value", "ratio", "pairs"},
	}
	judged := haveTargets(rows)
	if judged {
		p.Head = append(p.Head, "target", "met")
	}
	for _, r := range rows {
		cells := chart.Texts(r.Case, r.Metric, quantity(r.Value, r.Unit), r.Baseline, quantity(r.BaselineValue, r.Unit), number(r.Ratio), strconv.Itoa(r.Pairs))
		if judged {
			cells = append(cells, chart.Cell{Text: r.target()}, chart.Verdict(r.Met))
		}
		p.Rows = append(p.Rows, cells)
	}
	return p.Write(w)
}

// legend says what is measured.
const legend = "cpu is the processor time of both processes, and allocs what they allocate. The baselines tcp and tls are streams of octets, written in pieces " +
	"of 64 KiB and more whatever the size of an operation is: for small operations, compare with reqresp, which sends and answers each one by itself."

// facts say where and how the numbers were measured.
func (o *options) facts() [][2]string {
	version := "unknown"
	if b, ok := debug.ReadBuildInfo(); ok {
		version = b.Main.Version // of an installation; a clone has a revision
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" {
				version = s.Value
			}
		}
	}
	cc := o.work.CC
	if cc == "" {
		cc = "the system's"
	}
	host, _ := os.Hostname() // only for people to read
	return [][2]string{
		{"Command", "iwarp perf " + o.args},
		{"Revision", version},
		{"Go", runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH},
		{"Processors", strconv.Itoa(runtime.NumCPU())},
		{"Host", host},
		{"Congestion control", cc},
		{"Date", time.Now().UTC().Format("2006-01-02 15:04 UTC")},
	}
}

// charts returns the plots for which there are points.
func charts(points []measured) []chart.Chart {
	speed := chart.Chart{Title: "Throughput", Unit: "GB/s"}
	ratio := chart.Chart{Title: "Throughput, ratio to the baseline", Unit: "ratio", Linear: true, Mark: 1}
	times := chart.Chart{Title: "Latency", Unit: "us"}
	slower := chart.Chart{Title: "Median latency, ratio to the baseline", Unit: "ratio", Linear: true, Mark: 1}
	for i, op := range operations {
		class := "c" + strconv.Itoa(i+1)
		var subject, base, ratios, medians []chart.Point
		var tails [3][]chart.Point
		name := ""
		for _, m := range points {
			if m.w.Op != op {
				continue
			}
			r := m.of(throughput.name)
			subject = r.add(subject, m.w.Size, r.Value)
			base = r.add(base, m.w.Size, r.BaselineValue)
			ratios = r.add(ratios, m.w.Size, r.Ratio)
			for k, q := range []metric{p50, p99, p999} {
				r := m.of(q.name)
				tails[k] = r.add(tails[k], m.w.Size, r.Value)
				if k == 0 {
					medians = r.add(medians, m.w.Size, r.Ratio)
				}
			}
			if r.Baseline != "" {
				name = r.Baseline
			}
		}
		speed.Add(op, class, subject)
		speed.Add(name+" "+op, class+" base", base)
		ratio.Add(op, class, ratios)
		slower.Add(op, class, medians)
		for k, q := range []metric{p50, p99, p999} {
			times.Add(op+" "+q.name, class+" t"+strconv.Itoa(k), tails[k])
		}
	}
	return []chart.Chart{speed, ratio, times, slower}
}

// add appends a value if there is one.
func (r *row) add(points []chart.Point, x int, y *float64) []chart.Point {
	if y == nil {
		return points
	}
	return append(points, chart.Point{X: float64(x), Y: *y})
}
