package incast

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// headers is how much longer than their payload the messages on the link are at most, and what a
// connection sends besides.
const headers = 1.03

// A report is what all runs have come to.
type report struct {
	Window  int64     `json:"window"`
	Samples []*sample `json:"samples"`
	Marks   []mark    `json:"marks"`

	rate   int64
	octets float64
}

// A mark is a target, and what was measured.
type mark struct {
	What   string  `json:"what"`
	Target float64 `json:"target"`
	Least  bool    `json:"least,omitempty"` // the value is to be the target at least, else at most
	Value  float64 `json:"value"`
	Met    bool    `json:"met"`
}

func (r *report) mark(what string, value, target float64, least bool) {
	met := value <= target
	if least {
		met = value >= target
	}
	r.Marks = append(r.Marks, mark{What: what, Target: target, Least: least, Value: value, Met: met})
}

// judge holds the samples against the marks.
func (r *report) judge() {
	free, bound := r.of(ways[0].name), r.of(ways[1].name)
	var granted, backlog float64
	var goodput, p99 []float64
	for i, s := range bound {
		granted, backlog = max(granted, float64(s.Granted)), max(backlog, float64(s.Backlog))
		goodput = append(goodput, r.goodput(s))
		p99 = append(p99, float64(free[i].P99)/float64(s.P99))
	}
	w := float64(r.Window)
	r.mark("granted at most, of the window", granted/w, 1, false)
	r.mark("backlog at most, of the window", backlog/w, headers, false)
	r.mark("goodput of the solicited Reads, of the link", median(goodput), 0.9, true)
	r.mark("p99 of a Read of 64 octets, unsolicited / solicited", median(p99), 10, true)
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

func (r *report) missed() bool {
	return slices.ContainsFunc(r.Marks, func(m mark) bool { return !m.Met })
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

func (r *report) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "way\telapsed\tof the link\tbacklog\tvictim p50\tp99\t")
	for _, s := range r.Samples {
		fmt.Fprintf(t, "%s\t%v\t%.0f %%\t%d KiB\t%v\t%v\t\n", s.Way, s.Elapsed.Round(time.Millisecond), 100*r.goodput(s),
			s.Backlog>>10, s.P50.Round(10*time.Microsecond), s.P99.Round(10*time.Microsecond))
	}
	fmt.Fprintln(t, "\t\t\t\t\t\t")
	fmt.Fprintln(t, "mark\tmeasured\ttarget\tmet\t\t\t")
	for _, m := range r.Marks {
		word := "yes"
		if !m.Met {
			word = "NO"
		}
		fmt.Fprintf(t, "%s\t%.2f\t%s\t%s\t\t\t\n", m.What, m.Value, m.text(), word)
	}
	return t.Flush()
}

// text is the target.
func (m *mark) text() string {
	if m.Least {
		return fmt.Sprintf(">= %.2f", m.Target)
	}
	return fmt.Sprintf("<= %.2f", m.Target)
}
