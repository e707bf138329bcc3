package perf

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/chart"
)

// print writes the rows as a table or, with -json, as one object a line.
func (o *options) print(w io.Writer, rows []row) error {
	if !o.json {
		return printTable(w, rows)
	}
	enc := json.NewEncoder(w)
	for i := range rows {
		if err := enc.Encode(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

func printTable(w io.Writer, rows []row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	judged := haveTargets(rows)
	columns := "case\tmetric\tvalue\tbaseline\tratio\tpairs\t"
	if judged {
		columns += "target\tmet\t"
	}
	fmt.Fprintln(t, columns)
	for _, r := range rows {
		base, ratio := "", ""
		if r.BaselineValue != nil {
			base, ratio = r.Baseline+" "+quantity(r.BaselineValue, r.Unit), number(r.Ratio)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t", r.Case, r.Metric, quantity(r.Value, r.Unit), base, ratio, r.Pairs)
		if judged {
			met := ""
			if r.Met != nil {
				met = map[bool]string{true: "yes", false: "NO"}[*r.Met]
			}
			fmt.Fprintf(t, "%s\t%s\t", r.target(), met)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// haveTargets reports whether a row has a target: rows of a suite do.
func haveTargets(rows []row) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return r.Target != nil })
}

// target shows the bound, and whether it is an upper or a lower one.
func (r row) target() string {
	if r.Target == nil {
		return ""
	}
	way := ">= "
	if r.most {
		way = "<= "
	}
	return way + strconv.FormatFloat(*r.Target, 'g', 4, 64)
}

// prefixes are smaller and larger units for values that would be hard to read, by unit: the bound of the value, the
// factor, and the new unit.
var prefixes = map[string][]struct {
	below, by float64
	unit      string
}{
	"GB/s":   {{0.0001, 1e6, "kB/s"}, {0.1, 1e3, "MB/s"}},
	"Mops/s": {{0.001, 1e6, "ops/s"}, {0.1, 1e3, "kops/s"}},
	"us":     {{0.1, 1e3, "ns"}, {1e4, 1, "us"}, {1e7, 1e-3, "ms"}, {math.Inf(1), 1e-6, "s"}},
}

// quantity shows a value with its unit, or with one that is easier to read.
func quantity(v *float64, unit string) string {
	switch {
	case v == nil:
		return number(v)
	case *v == 0:
		return number(v) + " " + unit
	}
	for _, p := range prefixes[unit] {
		if *v < p.below {
			return chart.Number(*v*p.by) + " " + p.unit
		}
	}
	return chart.Number(*v) + " " + unit
}

// number shows three significant digits, or a dash if there is no number.
func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return chart.Number(*v)
}
