package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/goiwarp/iwarp/internal/mutate/list"
)

// maxExceptionPercent bounds the share of mandatory requirements without a test.
const maxExceptionPercent = 3

// A ledger combines the requirements with the tests that show them.
type ledger struct {
	requirements []requirement
	tests        map[string][]string // by requirement
	mutated      map[string]bool     // by requirement: a planted defect makes a test of it fail
	unmutable    map[string]string   // by requirement: why no defect can be planted
	exceptions   map[string]string   // reason by requirement
}

// load reads everything from the tree of the module.
func load(root string) (*ledger, error) {
	rs, err := requirements()
	if err != nil {
		return nil, err
	}
	tests, err := scanTests(root)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, exceptionsFile))
	if err != nil {
		return nil, err
	}
	exceptions, err := parseExceptions(string(text))
	if err != nil {
		return nil, err
	}
	defects, err := list.Load()
	if err != nil {
		return nil, err
	}
	mutated := make(map[string]bool)
	for _, m := range defects.Mutations {
		if m.HasRequirement() {
			mutated[m.Requirement()] = true
		}
	}
	return &ledger{requirements: rs, tests: tests, mutated: mutated, unmutable: defects.None, exceptions: exceptions}, nil
}

// A tally counts requirements by how they are shown.
type tally struct {
	all, tested, mutated, unmutable, excepted, missing int
}

func (t *tally) add(tested, mutated, unmutable, excepted bool) {
	t.all++
	switch {
	case tested:
		t.tested++
		if mutated {
			t.mutated++
		}
		if unmutable {
			t.unmutable++
		}
	case excepted:
		t.excepted++
	default:
		t.missing++
	}
}

// count tallies the requirements that match.
func (l *ledger) count(match func(requirement) bool) tally {
	var t tally
	for _, r := range l.requirements {
		if match(r) {
			_, excepted := l.exceptions[r.id]
			t.add(len(l.tests[r.id]) > 0, l.mutated[r.id], l.unmutable[r.id] != "", excepted)
		}
	}
	return t
}

// problems lists, in words, everything that is wrong with the ledger.
func (l *ledger) problems() []string {
	var ps []string
	known := make(map[string]bool)
	missing := make(map[string]int) // rows of a series that is unfinished
	for _, r := range l.requirements {
		known[r.id] = true
		_, excepted := l.exceptions[r.id]
		switch tested := len(l.tests[r.id]) > 0; {
		case tested && excepted:
			ps = append(ps, fmt.Sprintf("%s has a test and an exception: drop the exception", r.id))
		case !tested && !excepted && r.unfinished:
			missing[r.prefix]++
		case !tested && !excepted:
			ps = append(ps, fmt.Sprintf("%s has neither a test that is named for it nor an exception in %s", r.id, exceptionsFile))
		case tested && r.mandatory() && !l.mutated[r.id] && l.unmutable[r.id] == "":
			ps = append(ps, fmt.Sprintf("%s has no planted defect, and no reason why none can be planted", r.id))
		}
	}
	return append(append(ps, l.finished(missing)...), l.strays(known)...)
}

// finished finds series that are marked as unfinished but lack nothing.
func (l *ledger) finished(missing map[string]int) (ps []string) {
	prefix := ""
	for _, r := range l.requirements {
		if r.prefix != prefix && r.unfinished && missing[r.prefix] == 0 {
			ps = append(ps, fmt.Sprintf("%s is marked as unfinished, and no row is missing: drop the mark", r.prefix))
		}
		prefix = r.prefix
	}
	return ps
}

// strays finds entries for requirements that do not exist, and too many exceptions.
func (l *ledger) strays(known map[string]bool) (ps []string) {
	for _, id := range slices.Sorted(maps.Keys(l.tests)) {
		if !known[id] {
			ps = append(ps, fmt.Sprintf("%s is cited by %s, but there is no such requirement", id, l.tests[id][0]))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.mutated)) {
		if !known[id] {
			ps = append(ps, fmt.Sprintf("%s has a planted defect, but there is no such requirement", id))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.unmutable)) {
		if !known[id] || len(l.tests[id]) == 0 {
			ps = append(ps, fmt.Sprintf("%s has a reason why no defect can be planted, but no test", id))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.exceptions)) {
		if !known[id] {
			ps = append(ps, fmt.Sprintf("%s has an exception, but there is no such requirement", id))
		}
	}
	if t := l.count(requirement.mandatory); t.excepted*100 > t.all*maxExceptionPercent {
		ps = append(ps, fmt.Sprintf("%d of %d mandatory requirements are exceptions: more than %d %%",
			t.excepted, t.all, maxExceptionPercent))
	}
	return ps
}
