package commitperf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
)

// A report is what was measured.
type report struct {
	out      io.Writer
	errs     io.Writer // of the targets
	progress *cli.Progress
	json     bool // one object a line
	missed   bool
}

// show prints a line, or the same as JSON.
func (r *report) show(v map[string]any, format string, args ...any) {
	r.progress.Clear()
	if r.json {
		_ = json.NewEncoder(r.out).Encode(v) // numbers and text can be encoded
		return
	}
	fmt.Fprintf(r.out, format, args...)
}

func (r *report) run(ctx context.Context, o options) error {
	defer r.progress.Clear()
	if !r.json {
		fmt.Fprintf(r.out, "%-6s %12s %14s %14s %10s\n", "medium", "concurrency", "push", "pull", "syncs/op")
	}
	for _, o.medium = range []string{noMedium, fileMedium} {
		for _, o.slots = range concurrencies {
			if err := r.rows(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// rows measures one medium at one concurrency.
func (r *report) rows(ctx context.Context, o options) (err error) {
	r.progress.Say("measuring, medium %s, concurrency %d", o.medium, o.slots)
	push, err := openCluster(ctx, o, false, r.errs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, push.close()) }()
	pull, err := openCluster(ctx, o, true, r.errs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pull.close()) }()
	if o.slots == 1 {
		if err := r.latency(push.ends[0], pull.ends[0], o); err != nil {
			return err
		}
	}
	if err := r.rate(ctx, push, pull, o); err != nil {
		return err
	}
	if o.slots == groupAt && o.medium == fileMedium {
		return r.group(ctx, push, o)
	}
	return nil
}

// rate measures operations in a second.
func (r *report) rate(ctx context.Context, push, pull *cluster, o options) error {
	before, err := push.syncs(ctx)
	if err != nil {
		return err
	}
	pushed, ops, err := rateOf(push.ends, o.span, (*end).push)
	if err != nil {
		return err
	}
	syncs, err := push.syncs(ctx)
	if err != nil {
		return err
	}
	pulled, _, err := rateOf(pull.ends, o.span, (*end).pull)
	if err != nil {
		return err
	}
	perOp := float64(syncs-before) / float64(ops)
	r.show(map[string]any{"medium": o.medium, "concurrency": o.slots, "pushes_per_s": pushed, "pulls_per_s": pulled, "syncs_per_push": perOp},
		"%-6s %12d %12.0f/s %12.0f/s %10.2f\n", o.medium, o.slots, pushed, pulled, perOp)
	return nil
}

// groupPairs is how often group measures both rates.
const groupPairs = 5

// group compares the rate of all connections with that of one connection, in turn and for
// half of the span each, because a disk is faster at one moment than at the next.
func (r *report) group(ctx context.Context, push *cluster, o options) (err error) {
	if o.dir, err = os.MkdirTemp(o.dir, "serial"); err != nil {
		return err
	}
	o.slots = 1
	serial, err := openCluster(ctx, o, false, r.errs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, serial.close()) }()
	var gains ratios
	for range groupPairs {
		one, _, err := rateOf(serial.ends, o.span/2, (*end).push)
		if err != nil {
			return err
		}
		all, _, err := rateOf(push.ends, o.span/2, (*end).push)
		if err != nil {
			return err
		}
		gains = append(gains, all/one)
	}
	r.goal("push, against its serial rate", gains.median(), leastGroup, false)
	return nil
}

func (r *report) goal(what string, got, want float64, most bool) {
	sign, met := ">=", got >= want
	if most {
		sign, met = "<=", got <= want
	}
	word := "met"
	if !met {
		word, r.missed = "MISSED", true
	}
	r.show(map[string]any{"goal": what, "target": want, "least": !most, "value": got, "met": met},
		"       goal: %s %s %.2f: %.2f, %s\n", what, sign, want, got, word)
}
