package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goiwarp/iwarp"
)

// print prints the numbers of a run, and the findings.
func (s *soak) print(took time.Duration) {
	sum, faults, lost, doubled := s.tally.Sum()
	all := 0
	for _, n := range sum.Posted {
		all += n
	}
	s.row("programs", "%d in %v", s.jobs, took.Round(time.Millisecond))
	s.row("operations", "%d, and %d receives", all, sum.Receives)
	for _, op := range slices.SortedFunc(maps.Keys(sum.Posted), func(a, b iwarp.Op) int { return int(a) - int(b) }) {
		s.row("  "+op.String(), "%d", sum.Posted[op])
	}
	s.row("shared region", "%d writes, %d reads, %d sent by its owner", s.shared.writes, s.shared.reads, s.shared.mirrored)
	all = 0
	for _, n := range faults {
		all += n
	}
	s.row("faults", "%d of connections", all)
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		s.row("  "+name, "%d", faults[name])
	}
	s.row("  datagrams", "%d lost, %d corrupt, %d late", s.datagrams.lost.Load(), s.datagrams.corrupt.Load(), s.datagrams.late.Load())
	s.row("verified octets", "%d of %d, and %d of the shared region", sum.Octets, sum.Due, s.shared.octets)
	s.row("completions", "%d", sum.Completed)
	s.row("  lost", "%d", lost)
	s.row("  doubled", "%d", doubled)
	for _, m := range []struct {
		when string
		u    usage
	}{{"at the begin", s.start}, {"after round 1", s.first}, {"after the last", s.last}, {"at the end", s.end}} {
		s.row(m.when, "%v", m.u)
	}
	s.row("findings", "%d", len(s.findings.all()))
	for _, f := range s.findings.all() {
		fmt.Fprintf(s.w, "\nfinding: %s\n", f)
	}
}

// row prints one row.
func (s *soak) row(name, format string, args ...any) {
	fmt.Fprintf(s.w, "%-26s %s\n", name, fmt.Sprintf(format, args...))
}
