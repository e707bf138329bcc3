package incast

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
)

// headers is the most by which the messages on the link are longer than their payload, including what a
// connection sends besides.
const headers = 1.03

// A report holds the results of all runs.
type report struct {
	Window  int64      `json:"window"`
	Buffer  int        `json:"buffer"`
	Samples []*sample  `json:"samples"`
	Marks   marks.List `json:"marks"`

	rate   int64
	octets float64
}

// judge compares the samples of each way that has a window with the marks, and with those of the first way.
func (r *report) judge() {
	for _, w := range ways[1:] {
		r.hold(w)
	}
}

// hold compares the samples of a way with the marks.
func (r *report) hold(w way) {
	free := r.of(ways[0].name)
	var granted, backlog, overflow float64
	var goodput, p99 []float64
	for i, s := range r.of(w.name) {
		granted, backlog = max(granted, float64(s.Granted)), max(backlog, float64(s.Backlog))
		overflow = max(overflow, float64(s.Overflow))
		goodput = append(goodput, r.goodput(s))
		p99 = append(p99, float64(free[i].P99)/float64(s.P99))
	}
	window := float64(r.Window)
	r.Marks.Most(w.short+": granted at most, of the window", granted/window, 1, "")
	r.Marks.Most(w.short+": backlog at most, of the window", backlog/window, headers, "")
	r.Marks.Most(w.short+": octets that do not fit into the buffer", overflow, 0, "")
	r.Marks.Least(w.short+": goodput, of the link", stats.Median(goodput), 0.9)
	r.Marks.Least(w.short+": p99 of a Read of 64 octets, beside Writes / beside these", stats.Median(p99), 10)
}

func (r *report) goodput(s *sample) float64 {
	return r.octets / s.Elapsed.Seconds() / float64(r.rate)
}

// of returns the samples of one way.
func (r *report) of(way string) (all []*sample) {
	for _, s := range r.Samples {
		if s.Way == way {
			all = append(all, s)
		}
	}
	return all
}

func (r *report) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "way\telapsed\tof the link\tbacklog\toverflow\tvictim p50\tp99\t")
	for _, s := range r.Samples {
		fmt.Fprintf(t, "%s\t%v\t%.0f %%\t%d KiB\t%d MiB\t%v\t%v\t\n", s.Way, s.Elapsed.Round(time.Millisecond), 100*r.goodput(s),
			s.Backlog>>10, s.Overflow>>20, s.P50.Round(10*time.Microsecond), s.P99.Round(10*time.Microsecond))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return r.Marks.Print(w)
}
