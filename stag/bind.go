package stag

import (
	"context"
	"fmt"
)

// Bind puts a binding that [Window.Prepare] made into force: from now on w names the
// octets of the region on from off, only for the stream user, and until it is
// invalidated. in holds the windows of that stream.
//
// Window, region and stream must belong to one PD. The region must be VALID, have MWBind,
// and admit the stream; the window must be INVALID; the octets must be within the region. A
// window grants a peer at least one right, and only Remote rights. To grant
// RemoteWrite or RemoteAtomic the region needs LocalWrite, but it need not grant the peer
// anything itself (section 7.10.6.1 of draft-hilland-rddp-verbs). Unlike in that draft, the
// base of the region may be any TO.
//
// The region cannot be invalidated or closed while windows are bound to it.
func (t *Table) Bind(user Scope, in *Windows, w, on *Region, off uint64) error {
	e := w.entry
	if e == nil || e.table != t || !e.window {
		return errNotPrepared
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.admit(user, w); err != nil {
		return err
	}
	if err := on.mayBind(user, w, off); err != nil {
		return err
	}
	if !on.lend() {
		return ErrInvalid
	}
	w.cover(on, off)
	w.scope = user
	w.on, w.in = on, in
	in.add(w)
	e.enable(w)
	return nil
}

// mayBind checks the region that a window is to be bound to.
func (r *Region) mayBind(user Scope, w *Region, off uint64) error {
	switch {
	case r.IsWindow():
		return errNotPrepared
	case !r.scope.admits(user):
		return errOtherScope
	case r.access&MWBind == 0:
		return fmt.Errorf("%w: the region has no MWBind", errRights)
	case w.access == 0 || w.access&(RemoteWrite|RemoteAtomic) != 0 && r.access&LocalWrite == 0:
		return fmt.Errorf("%w: a window with %v to a region with %v", errRights, w.access, r.access)
	case off > r.size || w.size > r.size-off:
		return ErrBounds
	}
	return nil
}

// cover makes the window r refer to its part of on. No other goroutine can access r yet.
func (r *Region) cover(on *Region, off uint64) {
	if on.buf == nil {
		r.mem = on.mem[off : off+r.size : off+r.size]
	} else {
		r.buf = section{on.buf, int64(off)}
	}
	if on.flush != nil {
		r.flush = flushSection{on.flush, int64(off)}
	}
	if on.watch != nil {
		r.watch = watchSection{on.watch, int64(off)}
	}
	if on.dirty != nil {
		r.dirty = func(at, n int64) { on.dirty(int64(off)+at, n) }
	}
	if on.through != nil {
		r.through = func(at, n int64) { on.through(int64(off)+at, n) }
	}
	if on.failed != nil {
		r.failed = func(at, n int64, err error) { on.failed(int64(off)+at, n, err) }
	}
}

// lend counts a window that is being bound to the region, or reports false if the region is INVALID.
func (r *Region) lend() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.Usable() {
		return false
	}
	r.windows++
	return true
}

// unbind returns an invalidated window to its PD, and its octets to the region. No placement
// is in flight any more. For other regions, or a second time, it does nothing.
func (r *Region) unbind() {
	r.mu.Lock()
	on, in := r.on, r.in
	r.on, r.in = nil, nil
	if on != nil {
		r.mem, r.buf = nil, nil
	}
	r.mu.Unlock()
	if on == nil {
		return
	}
	in.remove(r)
	on.mu.Lock()
	defer on.mu.Unlock()
	on.windows--
}

// A section is the part of a Buffer that a window covers, from off on. Its Size is never
// called.
type section struct {
	Buffer
	off int64
}

func (s section) ReadAt(p []byte, off int64) (int, error)  { return s.Buffer.ReadAt(p, s.off+off) }
func (s section) WriteAt(p []byte, off int64) (int, error) { return s.Buffer.WriteAt(p, s.off+off) }

type flushSection struct {
	Flusher
	off int64
}

func (s flushSection) Flush(ctx context.Context, off, n int64) error {
	return s.Flusher.Flush(ctx, s.off+off, n)
}

type watchSection struct {
	Watch
	off int64
}

func (s watchSection) Wrote(began uint64, off, n int64, err error) {
	s.Watch.Wrote(began, s.off+off, n, err)
}
