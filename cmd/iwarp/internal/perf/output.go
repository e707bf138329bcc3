package perf

import (
	"encoding/json"
	"fmt"
	"io"
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
	fmt.Fprintln(t, "case\tmetric\tvalue\tbaseline\tratio\ttarget\tmet\tpairs\t")
	for _, r := range rows {
		base, met := "", ""
		if r.BaselineValue != nil {
			base = r.Baseline + " " + number(r.BaselineValue)
		}
		if r.Met != nil {
			met = map[bool]string{true: "yes", false: "NO"}[*r.Met]
		}
		fmt.Fprintf(t, "%s\t%s\t%s %s\t%s\t%s\t%s\t%s\t%d\t\n",
			r.Case, r.Metric, number(r.Value), r.Unit, base, number(r.Ratio), r.target(), met, r.Pairs)
	}
	return t.Flush()
}

// target shows the bound, and which way it is one.
func (r row) target() string {
	if r.Target == nil {
		return ""
	}
	way := ">= "
	if r.most {
		way = "<= "
	}
	return way + strconv.FormatFloat(*r.Target, 'f', -1, 64)
}

// number shows three digits that count, and no number as a dash.
func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return chart.Number(*v)
}
