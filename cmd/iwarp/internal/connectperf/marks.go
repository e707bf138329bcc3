package connectperf

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// A mark is a target, and what was measured.
type mark struct {
	What   string  `json:"what"`
	Unit   string  `json:"unit,omitempty"`
	Target float64 `json:"target"`
	Least  bool    `json:"least,omitempty"` // the value is to be the target at least, else at most
	Value  float64 `json:"value"`
	Met    bool    `json:"met"`
}

// A report is what the marks have come to.
type report struct {
	Marks   []mark    `json:"marks"`
	Samples []samples `json:"samples"`

	ctx     context.Context
	stderr  io.Writer
	repeats int
	largest int // number of connections: 4096
}

func (r *report) most(what string, value, target float64, unit string) {
	r.Marks = append(r.Marks, mark{What: what, Unit: unit, Target: target, Value: value, Met: value <= target})
}

func (r *report) least(what string, value, target float64) {
	r.Marks = append(r.Marks, mark{What: what, Target: target, Least: true, Value: value, Met: value >= target})
}

func (r *report) missed() bool {
	for _, m := range r.Marks {
		if !m.Met {
			return true
		}
	}
	return false
}

// runMarks measures all marks.
func runMarks(ctx context.Context, o *options, stdout, stderr io.Writer) error {
	r := &report{ctx: ctx, stderr: stderr, repeats: o.repeats, largest: 4096}
	for _, measure := range []func() error{r.overlap, r.pipeline, r.againstRaw, r.againstEach, r.authentication, r.flood} {
		if err := measure(); err != nil {
			return err
		}
	}
	var err error
	if o.json {
		err = printJSON(stdout, r)
	} else {
		err = r.print(stdout)
	}
	if err == nil && r.missed() {
		err = ErrMissed
	}
	return err
}

// take measures points in turn: so often, unless the flag says how often.
func (r *report) take(delay time.Duration, repeats int, points ...point) ([]samples, error) {
	all, err := interleaved(r.ctx, r.stderr, delay, cmp.Or(r.repeats, repeats), points...)
	r.Samples = append(r.Samples, all...)
	return all, err
}

func (r *report) print(stdout io.Writer) error {
	t := tabwriter.NewWriter(stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "mark\tmeasured\ttarget\tmet\t")
	for _, m := range r.Marks {
		sign, word := "<=", "yes"
		if m.Least {
			sign = ">="
		}
		if !m.Met {
			word = "NO"
		}
		fmt.Fprintf(t, "%s\t%.2f%s\t%s %.2f%s\t%s\t\n", m.What, m.Value, m.Unit, sign, m.Target, m.Unit, word)
	}
	return t.Flush()
}
