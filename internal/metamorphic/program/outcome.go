package program

import (
	"fmt"
	"maps"
	"slices"
)

// An Outcome is what was observed of a program and does not depend on the Config: what each end has
// completed, all octets whenever all work is done, and the events.
type Outcome map[End][]string

func (o Outcome) addf(end End, format string, args ...any) {
	o[end] = append(o[end], fmt.Sprintf(format, args...))
}

// compareOutcomes returns an error that says where two outcomes differ.
func compareOutcomes(a, b Outcome) error {
	ends := slices.Collect(maps.Keys(a))
	for end := range b {
		if _, ok := a[end]; !ok {
			ends = append(ends, end)
		}
	}
	slices.SortFunc(ends, func(x, y End) int { return 2*(x.Conn-y.Conn) + x.Side - y.Side })
	for _, end := range ends {
		x, y := a[end], b[end]
		for i := range max(len(x), len(y)) {
			if l, r := at(x, i), at(y, i); l != r {
				return fmt.Errorf("%v: %q differs from %q", end, l, r)
			}
		}
	}
	return nil
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}
