package connectperf

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
)

// A gridReport is the JSON output for all points: one object, as for every command.
type gridReport struct {
	Points []gridRow `json:"points"`
}

// A gridRow is a point and its baseline.
type gridRow struct {
	Samples samples `json:"samples"`
	Raw     samples `json:"raw"`
}

// runGrid measures each point against raw.
func runGrid(ctx context.Context, o *options, s cli.Streams, progress *cli.Progress) error {
	var rows []gridRow
	repeats := cmp.Or(o.repeats, 3)
	for _, delay := range o.grid.delay {
		for _, p := range o.grid.points(delay) {
			progress.Say("measuring %v", p)
			all, err := interleaved(ctx, s.Err, delay, repeats, p, p.raw())
			if err != nil {
				return err
			}
			rows = append(rows, gridRow{all[0], all[1]})
		}
	}
	progress.Clear()
	if o.json {
		return printJSON(s.Out, gridReport{rows})
	}
	t := tabwriter.NewWriter(s.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "point\ttotal\teach\tp50\tp99\tcpu client+server\tx Read\tpeak\tgoroutines\ttime / raw\tcpu / raw\t")
	for _, r := range rows {
		r.print(t)
	}
	return t.Flush()
}

// print prints medians.
func (r *gridRow) print(w io.Writer) {
	l := r.Samples
	d := func(value func(*sample) time.Duration) time.Duration {
		return time.Duration(l.median(func(s *sample) float64 { return float64(value(s)) })).Round(100 * time.Nanosecond)
	}
	fmt.Fprintf(w, "%v\t%v\t%v\t%v\t%v\t", l[0].point,
		d(func(s *sample) time.Duration { return s.Total }), d(func(s *sample) time.Duration { return s.each(s.Total) }),
		d(func(s *sample) time.Duration { return s.P50 }), d(func(s *sample) time.Duration { return s.P99 }))
	fmt.Fprintf(w, "%v+%v\t%.0f\t%.1f MiB\t%.0f\t%.2f\t%.2f\t\n",
		d(func(s *sample) time.Duration { return s.Client }), d(func(s *sample) time.Duration { return s.Server }),
		l.median(func(s *sample) float64 { return float64(s.P50) / max(float64(s.Read), 1) }),
		l.median(func(s *sample) float64 { return float64(s.Peak) / (1 << 20) }),
		l.median(func(s *sample) float64 { return float64(s.Goroutines) }),
		l.ratio(r.Raw, totalOf), l.ratio(r.Raw, cpuOf))
}
