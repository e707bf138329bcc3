// Package marks compares results with targets.
package marks

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// A Mark is a target, and the measured value.
type Mark struct {
	What   string  `json:"what"`
	Unit   string  `json:"unit,omitempty"`
	Target float64 `json:"target"`
	Least  bool    `json:"least,omitempty"` // the target is a lower bound; otherwise an upper bound
	Value  float64 `json:"value"`
	Met    bool    `json:"met"`
}

// Goal returns the target as text.
func (m *Mark) Goal() string {
	sign := "<="
	if m.Least {
		sign = ">="
	}
	return fmt.Sprintf("%s %.2f%s", sign, m.Target, m.Unit)
}

// A List holds the marks of a command.
type List []Mark

// Most adds a mark whose value must be at most the target.
func (l *List) Most(what string, value, target float64, unit string) {
	*l = append(*l, Mark{What: what, Unit: unit, Target: target, Value: value, Met: value <= target})
}

// Least adds a mark whose value must be at least the target.
func (l *List) Least(what string, value, target float64) {
	*l = append(*l, Mark{What: what, Target: target, Least: true, Value: value, Met: value >= target})
}

// Missed reports whether a mark was missed.
func (l List) Missed() bool {
	return slices.ContainsFunc(l, func(m Mark) bool { return !m.Met })
}

// Print writes a table.
func (l List) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "case\tmeasured\ttarget\tmet\t")
	for _, m := range l {
		word := "yes"
		if !m.Met {
			word = "NO"
		}
		fmt.Fprintf(t, "%s\t%.2f%s\t%s\t%s\t\n", m.What, m.Value, m.Unit, m.Goal(), word)
	}
	return t.Flush()
}
