package commit

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// A Latch is a Flusher of a user's own with a memory of what it has lost. When a Flush fails
// with an error that means DataLost or Vendor (see [Code]: EIO, ENOSPC and most other errnos, or an
// *[Error]), its octets, and all that were written and not made durable before, are lost: Flush
// answers DataLost for them, and does not ask the Flusher, until they have been written again.
// So are octets of which a write has failed. Any other error may be followed by a success.
//
// Of several Flushes that run at the same time, one may find nothing to do because another has it under
// way. So a success waits for the outcome of all that have begun before the Flusher has told it. If ctx ends first
// Flush returns its error, and the octets may be durable.
//
// It belongs to one region, and is its [stag.Options.Watch]. All methods may be called from any
// goroutine.
type Latch struct {
	f     Flusher
	calls calls

	mu      sync.Mutex
	losses  losses
	dirty   octetSet    // written, and not made durable since, as far as is known
	written [2]octetSet // while Flushes of an epoch, or of the one before, were running
	running [2]int      // Flushes that have begun in an epoch
	epoch   int         // 0 or 1
}

// NewLatch returns a Latch for f, or nil if f is a backing of this package, which has a memory
// of its own. A type of the user's that a backing is embedded in is none: its Flush may be another.
func NewLatch(f Flusher) *Latch {
	switch f.(type) {
	case *File, *Mapping, *Buffer, *Group:
		return nil
	}
	return &Latch{f: f}
}

// Began is that of [stag.Watch].
func (l *Latch) Began() uint64 { return l.losses.began() }

// Wrote is that of [stag.Watch].
func (l *Latch) Wrote(began uint64, off, n int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Range{off, n}
	l.dirty.add(r)
	if l.running[0]+l.running[1] > 0 {
		l.written[l.epoch].add(r)
	}
	if err != nil || l.losses.ever.Load() {
		l.losses.wrote(began, r, err)
	}
}

// errUnfinished is the outcome of a call that ends its goroutine ([runtime.Goexit]), as that of one that panics.
var errUnfinished = &Error{Status: MakeStatus(NoRegion, DataLost), Err: errors.New("the Flusher, or its Sync, has not returned")}

// Flush has the user's Flusher make octets durable, unless they are lost.
func (l *Latch) Flush(ctx context.Context, off, n int64) (err error) {
	r := Range{off, n}
	epoch, err := l.begin(r)
	if err != nil {
		return err
	}
	call := l.calls.begin()
	err = errUnfinished
	defer func() {
		err = l.end(epoch, r, err)
		l.calls.end(call) // when a loss is noted
	}()
	if err = l.call(ctx, off, n); err == nil {
		err = l.calls.endFirst(ctx, call)
	}
	return err
}

// call calls the user's Flusher.
func (l *Latch) call(ctx context.Context, off, n int64) (err error) {
	defer caught("Flush", &err)
	return l.f.Flush(ctx, off, n)
}

// begin is the begin of a Flush. What is written from now on is in the set of the epoch that
// it returns, or in that of the next, which does not end before this Flush.
func (l *Latch) begin(r Range) (epoch int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.losses.told(r); err != nil {
		return 0, err
	}
	if l.running[1-l.epoch] == 0 {
		l.epoch = 1 - l.epoch
		l.written[l.epoch].clear()
	}
	l.running[l.epoch]++
	return l.epoch, nil
}

// end is the end of a Flush, and returns what is to be told. A Flusher may have told another
// caller that it has lost what it tells this one nothing of.
func (l *Latch) end(epoch int, r Range, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[epoch]--
	switch {
	case err == nil:
		l.dirty.remove(r)
		l.written[epoch].each(r, l.dirty.add)
		l.written[l.epoch].each(r, l.dirty.add)
		return l.losses.told(r)
	case loses(err):
		l.losses.synced(err)
		l.losses.octets.add(r)
		l.dirty.each(everything, l.losses.octets.add)
		l.dirty.clear()
	default: // nothing is lost
	}
	return err
}

// calls are those of a Flusher whose outcome is not known.
type calls struct {
	mu    sync.Mutex
	last  uint64
	open  []uint64 // in ascending order
	waits []wait   // so too: each is woken once, and looks at nothing
}

// A wait is for the ends of all calls up to one.
type wait struct {
	last uint64
	over chan struct{}
}

func (c *calls) begin() (call uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.open = append(c.open, c.last)
	return c.last
}

// end ends a call, unless it has ended.
func (c *calls) end(call uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(call)
}

func (c *calls) endLocked(call uint64) {
	i, found := slices.BinarySearch(c.open, call)
	if !found {
		return
	}
	c.open = slices.Delete(c.open, i, i+1)
	n := 0
	for n < len(c.waits) && (len(c.open) == 0 || c.waits[n].last < c.open[0]) {
		close(c.waits[n].over)
		n++
	}
	c.waits = slices.Delete(c.waits, 0, n)
}

// endFirst ends a call, and waits until all that have begun by now have ended.
func (c *calls) endFirst(ctx context.Context, call uint64) error {
	over := c.endThen(call)
	if over == nil {
		return nil
	}
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		c.leave(over)
		return ctx.Err()
	}
}

// endThen ends a call, and returns what is closed when the others have ended; nil: there are none.
func (c *calls) endThen(call uint64) (over chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(call)
	if len(c.open) > 0 {
		over = make(chan struct{})
		c.waits = append(c.waits, wait{c.last, over})
	}
	return over
}

// leave takes a wait away.
func (c *calls) leave(over chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = slices.DeleteFunc(c.waits, func(w wait) bool { return w.over == over })
}
