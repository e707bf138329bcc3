package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/damage"
)

// A Runner runs programs over Configs.
type Runner struct {
	Wait    time.Duration // for the end of one program; 0: a minute
	Records ConnectFunc   // for network Records; nil: that network cannot be used
	Skipped func(c Config, why error)
	// Hold keeps back what the ends of a connection send after its Cut until all work is posted.
	Hold bool
	// BeforeCut is set in each damage.Line.
	BeforeCut func()
	// ListenPacket opens the sockets of sctp+udp; nil: the system does.
	ListenPacket damage.ListenFunc
	// Spoil, if not nil, changes what was observed, for tests of what notices it.
	Spoil func(c Config, o Outcome)

	// Hosts, if not nil, are the two hosts of all programs, instead of new ones. Network sctp+udp uses their sockets.
	Hosts *[2]*Host
	Tally *Tally // counts, if not nil
	// Lose and Blind, if not nil, show that a check works: Lose says whether to ignore a completion, and Blind returns
	// only some of the octets to compare.
	Lose  func(wc iwarp.WC) bool
	Blind func(octets []byte) []byte
}

// A Failure is what a Runner has found.
type Failure struct {
	Program Program
	Configs []Config // one, or two whose outcomes differ
	Err     error
	Trace   []Entry // of the last of them
}

func (f *Failure) Error() string { return fmt.Sprintf("%v: %v", f.Configs, f.Err) }

// number matches what may differ between two failures of the same kind.
var number = regexp.MustCompile(`#?\b(0x)?[0-9]+[ab]?\b`)

// Kind returns what the failure has in common with the failure of a smaller program.
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
	if r.Tally != nil {
		r.Tally.add(&x.counts, x.plan, err)
	}
	return x.outcome, x.trace, err
}

// execute runs a plan over one Config.
func (r *Runner) execute(plan *Plan, c Config) (*run, error) {
	wait := cmp.Or(r.Wait, time.Minute)
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	x := &run{
		plan: plan, cfg: c, records: r.Records, shared: r.Hosts, ctx: ctx, outcome: make(Outcome),
		counts: Counts{Posted: make(map[iwarp.Op]int)}, lose: r.Lose, blind: r.Blind,
		hold: r.Hold, beforeCut: r.BeforeCut, listenPacket: r.ListenPacket,
	}
	if err := x.execute(); err != nil {
		return x, err
	}
	return x, x.counts.check()
}
