// Package durable makes the regions of a PD durable.
package durable

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/internal/equal"
	"github.com/goiwarp/iwarp/stag"
)

// Options are those of a durable region: see MROptions.
type Options struct {
	By           stag.Flusher // MROptions.Durable
	WriteThrough bool
	Integrity    func(off, n int64) error // nil: there is nothing to check
}

// Apply sets the options in o that make a region durable. buf is the Buffer of the region, nil for
// memory. It fails if the Flusher is another Buffer, or of a type for which == panics.
func (opts Options) Apply(o *stag.Options, buf stag.Buffer) error {
	if own, ok := opts.By.(stag.Buffer); ok && !equal.Values(own, buf) {
		return fmt.Errorf("iwarp: register: MROptions.Durable is a Buffer, but not that of the region: pass the same %T, of a type that can be compared, to RegisterBuffer", own)
	}
	o.Flusher = opts.By
	if l := commit.NewLatch(opts.By); l != nil {
		o.Flusher, o.Watch = l, l
	}
	if w, ok := opts.By.(stag.Watch); ok && o.Watch == nil { // a commit.Group
		o.Watch = w
	} else if t, ok := opts.By.(interface{ Touched(off, n int64) }); ok {
		o.Dirty = t.Touched
	}
	if t, ok := opts.By.(interface {
		Failed(off, n int64, err error)
	}); ok {
		o.Failed = t.Failed
	}
	if opts.WriteThrough {
		o.Through = writeThrough(o.Flusher)
	}
	if opts.Integrity != nil {
		o.Flusher = checked{o.Flusher, opts.Integrity}
	}
	return nil
}

// writeThrough flushes what was written. If that fails, the next Commit reports it: f, a backing
// or a [commit.Latch], remembers what it has lost, and flushes the rest again.
func writeThrough(f stag.Flusher) func(off, n int64) {
	return func(off, n int64) { _ = f.Flush(context.Background(), off, n) }
}

// A checked flusher flushes only octets that have passed a check.
type checked struct {
	stag.Flusher
	check func(off, n int64) error
}

func (c checked) Flush(ctx context.Context, off, n int64) error {
	if err := c.passes(off, n); err != nil {
		return &commit.Error{Status: commit.MakeStatus(commit.NoRegion, commit.Integrity), Err: err}
	}
	return c.Flusher.Flush(ctx, off, n)
}

// passes calls the user's check. If the check panics, the octets do not pass.
func (c checked) passes(off, n int64) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &stag.PanicError{Method: "Integrity", Value: v, Stack: debug.Stack()}
		}
	}()
	return c.check(off, n)
}
