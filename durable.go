package iwarp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/stag"
)

// durable checks what the options say about durability of buf, nil for memory, and puts
// it into o.
func (opts *MROptions) durable(o *stag.Options, buf Buffer) error {
	if opts.Durable == nil {
		if opts.DurableOnReceive || opts.WriteThrough || opts.Integrity != nil {
			return errors.New("iwarp: register: MROptions.Durable is not set, and so nothing can be made durable")
		}
		return nil
	}
	if own, ok := opts.Durable.(Buffer); ok && own != buf {
		return fmt.Errorf("iwarp: register: MROptions.Durable makes octets of its own durable, and not those of the region: use RegisterBuffer with the same %T", own)
	}
	o.Flusher = opts.Durable
	if l := commit.NewLatch(opts.Durable); l != nil {
		o.Flusher, o.Watch = l, l
	}
	if t, ok := opts.Durable.(interface{ Touched(off, n int64) }); ok {
		o.Dirty = t.Touched
	}
	if t, ok := opts.Durable.(interface {
		Failed(off, n int64, err error)
	}); ok {
		o.Failed = t.Failed
	}
	if opts.WriteThrough {
		o.Dirty = writeThrough(o.Dirty, o.Flusher)
	}
	if opts.Integrity != nil {
		o.Flusher = checked{o.Flusher, opts.Integrity}
	}
	return nil
}

// writeThrough flushes what was written. If that fails the next Commit will tell: f, a backing
// or a [commit.Latch], remembers what it has lost, and what it has not lost is flushed again.
func writeThrough(touched func(off, n int64), f stag.Flusher) func(off, n int64) {
	return func(off, n int64) {
		if touched != nil {
			touched(off, n)
		}
		_ = f.Flush(context.Background(), off, n)
	}
}

// A checked flusher flushes what has passed a check.
type checked struct {
	stag.Flusher
	check func(off, n int64) error
}

func (c checked) Flush(ctx context.Context, off, n int64) error {
	if err := c.check(off, n); err != nil {
		return &commit.Error{Status: commit.MakeStatus(commit.NoRegion, commit.Integrity), Err: err}
	}
	return c.Flusher.Flush(ctx, off, n)
}

// onReceive is the regions of a PD that are flushed before a receive completes.
type onReceive struct {
	mu      sync.Mutex
	regions atomic.Pointer[[]*stag.Region] // never changed in place; nil: none
}

func (l *onReceive) add(r *stag.Region) {
	l.change(func(old []*stag.Region) []*stag.Region { return append(slices.Clone(old), r) })
}

func (l *onReceive) remove(r *stag.Region) {
	if l.regions.Load() == nil {
		return
	}
	l.change(func(old []*stag.Region) []*stag.Region {
		return slices.DeleteFunc(slices.Clone(old), func(x *stag.Region) bool { return x == r })
	})
}

func (l *onReceive) change(f func([]*stag.Region) []*stag.Region) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var old []*stag.Region
	if p := l.regions.Load(); p != nil {
		old = *p
	}
	if old = f(old); len(old) == 0 {
		l.regions.Store(nil)
		return
	}
	l.regions.Store(&old)
}

// flush makes durable what the peer of qp may have written.
func (l *onReceive) flush(qp *QP) error {
	p := l.regions.Load()
	if p == nil {
		return nil
	}
	for _, r := range *p {
		if s := r.Scope().Stream; s != 0 && s != qp.id {
			continue
		}
		var err error
		r.Hold() // before looking: Close waits from now on, or has been seen
		if r.Valid() {
			err = r.Flusher().Flush(context.Background(), 0, int64(r.Len()))
		}
		r.Release()
		if err != nil {
			return err
		}
	}
	return nil
}
