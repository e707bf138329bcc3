// Package commitperf measures RDMA Commit: octets that are pushed to the peer's disk by
// an RDMA Write and a Commit, against octets that the peer pulls (a message, an RDMA
// Read, a sync, an answer) and against a local sync.
package commitperf

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// ErrMissed is what Main returns when a goal was missed.
var ErrMissed = errors.New("not all goals are met")

// The goals.
const (
	mostOverLocal = 1.05 // of the latency of a push over that of a local sync and an empty RDMA Read
	leastGroup    = 7.0  // times the serial rate, at a concurrency of groupAt
	groupAt       = 64
	mostOfPull    = 0.6 // of the latency of a push over that of a pull, with a medium that takes no time
)

var concurrencies = []int{1, 16, 64, 256}

// slot is what one operation writes.
const slot = 4096

type options struct {
	dir  string
	span time.Duration
	goal bool
}

// Main is the command "iwarp perf commit".
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	fs := flag.NewFlagSet("iwarp perf commit", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.dir, "dir", "", "where to put the file; empty: the directory for temporary ones, which may be in memory")
	fs.DurationVar(&o.span, "span", 2*time.Second, "about how long each row takes")
	fs.BoolVar(&o.goal, "goal", true, "exit with 1 if a goal is missed")
	if err := fs.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(o.dir, "iwarp-commit")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r := &report{out: stdout}
	if err := r.run(ctx, dir, o.span); err != nil {
		return err
	}
	if r.missed && o.goal {
		return ErrMissed
	}
	return nil
}

// A report is what was measured.
type report struct {
	out    io.Writer
	missed bool
}

func (r *report) run(ctx context.Context, dir string, span time.Duration) error {
	fmt.Fprintf(r.out, "%-6s %12s %14s %14s %10s\n", "medium", "concurrency", "push", "pull", "syncs/op")
	for _, m := range []string{"none", "file"} {
		var serial rates
		for _, n := range concurrencies {
			c, err := openCluster(ctx, dir, m, n)
			if err != nil {
				return err
			}
			err = func() error {
				defer c.close()
				if n == 1 {
					if err := r.latency(ctx, c, m, span); err != nil {
						return err
					}
				}
				return r.rate(ctx, c, m, n, span, &serial)
			}()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// latency takes one operation of each kind in turn, and the median of what the turns have
// for a ratio: a disk is faster in one moment than in the next. The Read comes behind
// the local sync, for a processor that has slept through a sync sends and receives
// more slowly than one that has not, and a push has its sync in the middle.
func (r *report) latency(ctx context.Context, c *cluster, medium string, span time.Duration) error {
	kinds := []func(context.Context) error{c.pull[0].pull, c.push[0].push, c.local, c.push[0].emptyRead}
	times := make([]samples, len(kinds))
	var ofPull, overLocal ratios
	for end := time.Now().Add(span); time.Now().Before(end); {
		var took [4]time.Duration
		for i, f := range kinds {
			began := time.Now()
			if err := f(ctx); err != nil {
				return err
			}
			took[i] = time.Since(began)
			times[i] = append(times[i], took[i])
		}
		ofPull = append(ofPull, float64(took[1])/float64(took[0]))
		overLocal = append(overLocal, float64(took[1])/float64(took[2]+took[3]))
	}
	fmt.Fprintf(r.out, "%-6s latency: push %v, pull %v; local sync %v, empty RDMA Read %v\n",
		medium, times[1].median(), times[0].median(), times[2].median(), times[3].median())
	if medium == "none" {
		r.goal("push / pull", ofPull.median(), mostOfPull, true)
		return nil
	}
	r.goal("push / (local sync + empty RDMA Read)", overLocal.median(), mostOverLocal, true)
	return nil
}

// rates are operations in a second.
type rates struct{ push, pull float64 }

func (r *report) rate(ctx context.Context, c *cluster, medium string, n int, span time.Duration, serial *rates) error {
	var got rates
	var err error
	before, ops := c.syncs(), 0
	if got.push, ops, err = rateOf(ctx, c.push, span, (*end).push); err != nil {
		return err
	}
	syncs := float64(c.syncs()-before) / float64(ops)
	if got.pull, _, err = rateOf(ctx, c.pull, span, (*end).pull); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%-6s %12d %12.0f/s %12.0f/s %10.2f\n", medium, n, got.push, got.pull, syncs)
	if n == 1 {
		*serial = got
	}
	if n == groupAt && medium == "file" {
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
