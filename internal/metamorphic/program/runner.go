package program

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// A Runner runs programs over Configs.
type Runner struct {
	Wait    time.Duration // for the end of one program; 0: a minute
	Records ConnectFunc   // for network Records; nil: it cannot be used
	Skipped func(c Config, why error)
	// Spoil, if not nil, changes what was observed, for tests of what notices it.
	Spoil func(c Config, o Outcome)
}

// A Failure is what a Runner has found.
type Failure struct {
	Program Program
	Configs []Config // one, or two whose outcomes differ
	Err     error
	Trace   []Entry // of the last of them
}

func (f *Failure) Error() string { return fmt.Sprintf("%v: %v", f.Configs, f.Err) }

// number is what differs between two failures of the same kind.
var number = regexp.MustCompile(`#?\b(0x)?[0-9]+[ab]?\b`)

// Kind is what the failure has in common with that of a smaller program.
func (f *Failure) Kind() string {
	err := f.Err
	if step := (*stepError)(nil); errors.As(err, &step) {
		err = step.err
	}
	words := strings.Fields(number.ReplaceAllString(err.Error(), "N"))
	return strings.Join(words[:min(len(words), 4)], " ")
}

// Run runs a program over all configs, and returns nil if it ends as its model says with each, and
// the same with all.
func (r *Runner) Run(p Program, configs []Config) *Failure {
	var first Outcome
	var with Config
	for _, c := range configs {
		out, trace, err := r.once(p, c)
		if errors.Is(err, ErrNotHere) {
			if r.Skipped != nil {
				r.Skipped(c, err)
			}
			continue
		}
		if err != nil {
			return &Failure{Program: p, Configs: []Config{c}, Err: err, Trace: trace}
		}
		if first == nil {
			first, with = out, c
			continue
		}
		if err := compareOutcomes(first, out); err != nil {
			return &Failure{Program: p, Configs: []Config{with, c}, Err: err, Trace: trace}
		}
	}
	return nil
}

// once runs a program over one Config.
func (r *Runner) once(p Program, c Config) (Outcome, []Entry, error) {
	x, err := r.execute(New(p), c)
	if r.Spoil != nil {
		r.Spoil(c, x.outcome)
	}
	return x.outcome, x.trace, err
}

// execute runs a plan over one Config.
func (r *Runner) execute(plan *Plan, c Config) (*run, error) {
	wait := r.Wait
	if wait == 0 {
		wait = time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	x := &run{plan: plan, cfg: c, records: r.Records, ctx: ctx, outcome: make(Outcome)}
	return x, x.execute()
}
