package cm

import (
	"context"
	"slices"
	"sync"
)

// A window bounds how many items are pulled from a sequence and not yielded yet, and how many
// of them are worked on. Its size halves when descriptors run out, and grows back by one with
// each success.
//
// As in TCP, a burst of failures halves the window once: attempts that began before the last
// halving do not halve it again.
type window struct {
	max     int
	ordered bool          // results wait for one another
	room    chan struct{} // has a token if an item may be pulled

	mu      sync.Mutex
	size    int
	pulled  int
	done    int    // pulled items whose work has ended, not yielded yet
	halved  uint64 // how often the window was halved
	entered uint64 // how many attempts have entered
	active  int
	waiting []chan struct{} // for their turn to be active, in order
}

// maxInFlight bounds what a flow allocates for its window.
const maxInFlight = 1 << 16

func newWindow(size int) *window {
	size = min(size, maxInFlight)
	return &window{max: size, size: size, room: make(chan struct{}, 1)}
}

// pull waits until one more item may be pulled. It reports false if ctx has ended. One goroutine calls it.
func (w *window) pull(ctx context.Context) bool {
	for ctx.Err() == nil {
		w.mu.Lock()
		ok := w.pulled < w.size
		if ok {
			w.pulled++
		}
		w.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-w.room:
		case <-ctx.Done():
		}
	}
	return false
}

// yielded notes that a pulled item has been yielded.
func (w *window) yielded() {
	w.mu.Lock()
	w.pulled--
	w.done--
	w.mu.Unlock()
	w.tell()
}

// finished notes that a pulled item is to be yielded.
func (w *window) finished() {
	w.mu.Lock()
	w.done++
	w.mu.Unlock()
}

// A turn is the state of the window when an attempt became active.
type turn struct {
	halved  uint64 // how often the window was halved before
	entered uint64 // how many attempts have entered, including this one
	alone   bool   // no other attempt was active
}

// turn returns the turn of the attempt that has entered last; w.mu is locked.
func (w *window) turn() turn { return turn{w.halved, w.entered, w.active == 1 && w.free()} }

// free reports whether no result that may hold what an attempt needs waits to be yielded before
// it; w.mu is locked.
func (w *window) free() bool { return w.done == 0 || w.ordered }

func (w *window) tell() {
	select {
	case w.room <- struct{}{}:
	default:
	}
}

// enter waits until one more attempt may be active. The caller passes the turn to leave.
func (w *window) enter(ctx context.Context) (t turn, err error) {
	w.mu.Lock()
	if w.active < w.size && len(w.waiting) == 0 {
		defer w.mu.Unlock()
		w.active++
		w.entered++
		return w.turn(), ctxEnded(ctx, w.drop)
	}
	admitted := make(chan struct{})
	w.waiting = append(w.waiting, admitted)
	w.mu.Unlock()
	select {
	case <-admitted:
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.turn(), ctxEnded(ctx, w.drop)
	case <-ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		if i := slices.Index(w.waiting, admitted); i >= 0 {
			w.waiting = slices.Delete(w.waiting, i, i+1)
		} else {
			w.drop()
		}
		return t, causeOf(ctx)
	}
}

// ctxEnded calls undo if ctx has ended, and returns the cause.
func ctxEnded(ctx context.Context, undo func()) error {
	if ctx.Err() == nil {
		return nil
	}
	undo()
	return causeOf(ctx)
}

// drop ends the activity of one attempt; w.mu is locked.
func (w *window) drop() {
	w.active--
	w.admit()
}

// admit makes waiting attempts active, in order, as the size allows; w.mu is locked.
func (w *window) admit() {
	for len(w.waiting) > 0 && w.active < w.size {
		w.active++
		w.entered++
		close(w.waiting[0])
		w.waiting = slices.Delete(w.waiting, 0, 1)
	}
}

// An outcome is how an attempt has ended, for the window.
type outcome uint8

const (
	failed outcome = iota
	succeeded
	exhausted // for want of a descriptor, a local port or memory for a socket
)

// leave ends an active attempt. It reports whether the attempt was alone: then no other attempt or
// result held the resource that it lacked.
func (w *window) leave(o outcome, t turn) (alone bool) {
	w.mu.Lock()
	switch {
	case o == succeeded:
		w.size = min(w.size+1, w.max)
	case o == exhausted && t.halved == w.halved:
		w.halved++
		w.size = max(1, min(w.size, w.active)/2)
	}
	alone = t.alone && t.entered == w.entered && w.free()
	w.drop()
	w.mu.Unlock()
	w.tell()
	return alone
}
