package commitperf

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// A report is what was measured.
type report struct {
	out    io.Writer
	errs   io.Writer // of the targets
	missed bool
}

func (r *report) run(ctx context.Context, o options) error {
	fmt.Fprintf(r.out, "%-6s %12s %14s %14s %10s\n", "medium", "concurrency", "push", "pull", "syncs/op")
	for _, o.medium = range []string{noMedium, fileMedium} {
		var serial rates
		for _, o.slots = range concurrencies {
			if err := r.rows(ctx, o, &serial); err != nil {
				return err
			}
		}
	}
	return nil
}

// rows measures one medium at one concurrency.
func (r *report) rows(ctx context.Context, o options, serial *rates) (err error) {
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
	return r.rate(ctx, push, pull, o, serial)
}

// rates are operations in a second.
type rates struct{ push, pull float64 }

func (r *report) rate(ctx context.Context, push, pull *cluster, o options, serial *rates) error {
	var got rates
	before, err := push.syncs(ctx)
	if err != nil {
		return err
	}
	var ops int
	if got.push, ops, err = rateOf(push.ends, o.span, (*end).push); err != nil {
		return err
	}
	syncs, err := push.syncs(ctx)
	if err != nil {
		return err
	}
	if got.pull, _, err = rateOf(pull.ends, o.span, (*end).pull); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%-6s %12d %12.0f/s %12.0f/s %10.2f\n", o.medium, o.slots, got.push, got.pull, float64(syncs-before)/float64(ops))
	if o.slots == 1 {
		*serial = got
	}
	if o.slots == groupAt && o.medium == fileMedium {
		r.goal("push, against its serial rate", got.push/serial.push, leastGroup, false)
	}
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
	fmt.Fprintf(r.out, "       goal: %s %s %.2f: %.2f, %s\n", what, sign, want, got, word)
}
