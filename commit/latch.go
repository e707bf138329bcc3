package commit

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// A Latch adds to the user's own Flusher a memory of what it has lost. When a Flush fails
// with an error that means DataLost or Vendor (see [Code]: EIO, ENOSPC and most other errnos, or an
// *[Error]), its octets, and all that were written and not made durable before, are lost. Until they
// are written again, Flush returns DataLost for them without calling the Flusher. Octets whose write
// has failed are lost, too. Any other error may be followed by a success.
//
// Of several concurrent Flushes, one may find nothing to do because another is doing it. So after a
// success of the Flusher, Flush waits for the outcome of all Flushes that had begun by then. If ctx
// ends first Flush returns its error, and the octets may be durable.
//
// A Latch belongs to one region, and is its [stag.Options.Watch]. All methods may be called from any
// goroutine.
type Latch struct {
	f     Flusher
	calls calls

	mu      sync.Mutex
	losses  losses
	dirty   octetSet    // written, and not known to be durable
	written [2]octetSet // while Flushes of an epoch, or of the one before, were running
	running [2]int      // Flushes that began in an epoch
	epoch   int         // 0 or 1
}

// NewLatch returns a Latch for f, or nil if f is a backing of this package, which itself records
// losses. A user's type that embeds a backing is not a backing: its Flush may be different.
func NewLatch(f Flusher) *Latch {
	switch f.(type) {
	case *File, *Mapping, *Buffer, *Group:
		return nil
	}
	return &Latch{f: f}
}

// Began implements [stag.Watch].
func (l *Latch) Began() uint64 { return l.losses.began() }

// Wrote implements [stag.Watch].
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

// errUnfinished is the outcome of a call that ends its goroutine ([runtime.Goexit]), like that of a call that panics.
var errUnfinished = &Error{Status: MakeStatus(NoRegion, DataLost), Err: errors.New("the Flusher, or its Sync, has not returned")}

// Flush calls the user's Flusher to make octets durable, unless they are lost.
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
		l.calls.end(call) // after a loss has been recorded
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

// begin begins a Flush. What is written from now on is in the set of the epoch that it returns,
// or in the set of the next epoch, which does not end before this Flush.
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

// end ends a Flush, and returns its result. A Flusher may have reported a loss to another caller
// that it does not report to this one.
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

// calls are the calls of a Flusher whose outcome is not known.
type calls struct {
	mu    sync.Mutex
	last  uint64
	open  []uint64 // in ascending order
	waits []wait   // in ascending order, too: each is woken once, and checks nothing
}

// A wait waits for the ends of all calls up to last.
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

// endThen ends a call, and returns a channel that is closed when the other calls have ended, or nil if there are none.
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

// leave removes a wait.
func (c *calls) leave(over chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = slices.DeleteFunc(c.waits, func(w wait) bool { return w.over == over })
}
