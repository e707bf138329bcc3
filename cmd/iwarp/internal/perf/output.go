package perf

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"
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
		base, target, met := "", "", ""
		if r.BaselineValue != nil {
			base = r.Baseline + " " + number(r.BaselineValue)
		}
		if r.Target != nil {
			target = *r.Target
		}
		if r.Met != nil {
			met = map[bool]string{true: "yes", false: "NO"}[*r.Met]
		}
		fmt.Fprintf(t, "%s\t%s\t%s %s\t%s\t%s\t%s\t%s\t%d\t\n",
			r.Case, r.Metric, number(r.Value), r.Unit, base, number(r.Ratio), target, met, r.Pairs)
	}
	return t.Flush()
}

// number shows three digits that count, and no number as a dash.
func number(v *float64) string {
	if v == nil {
		return "-"
	}
	if *v == 0 {
		return "0"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(*v)))))
	return strconv.FormatFloat(*v, 'f', min(digits, 4), 64)
}
