package stag

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// A Window is a memory window: an STag that a stream binds to a part of a region, to
// lend that part to its peer for a while (draft-hilland-rddp-verbs section 7.10). What
// it grants is decided by its own bounds and rights; those of the region only limit what
// may be bound. It is of type 2B: bound, it serves the one stream that bound it. No work
// request gathers from a window or scatters into it. It is made by
// [Table.AllocateWindow]. All methods may be called from any goroutine.
type Window struct{ entry }

// AllocateWindow makes a window of a PD. It is INVALID until it is bound.
func (t *Table) AllocateWindow(pd uint64) (*Window, error) {
	w := &Window{entry{table: t, scope: Scope{PD: pd}, most: Remote, maxLen: math.MaxInt64, window: true}}
	if err := w.start(); err != nil {
		return nil, err
	}
	return w, nil
}

// Prepare names the binding of n octets that [Table.Bind] will put into force: until
// then its STag is INVALID. key is that of [FastRegion.Prepare]. It fails when the Window is
// closed, or without randomness; what is wrong with the binding itself, Bind tells.
func (w *Window) Prepare(n int, access Access, base uint64, key *uint8) (*Region, error) {
	return w.prepare(&Region{size: uint64(max(n, 0)), access: access, base: base}, key)
}

// Windows are the windows that are bound to one stream. The zero value has none. All
// methods may be called from any goroutine.
type Windows struct {
	mu    lockorder.Mutex[lockorder.Windows]
	bound map[*Region]struct{}
}

// Len returns how many windows are bound, those included whose invalidation waits for
// a placement.
func (ws *Windows) Len() int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.bound)
}

// Invalidate invalidates all of them, because their stream has ended.
func (ws *Windows) Invalidate() {
	ws.mu.Lock()
	all := slices.AppendSeq(make([]*Region, 0, len(ws.bound)), maps.Keys(ws.bound))
	ws.mu.Unlock()
	for _, w := range all {
		w.kill()
		_ = w.drain(context.Background(), pins) // fails only with its context
		w.unbind()
	}
}

func (ws *Windows) add(w *Region) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.bound == nil {
		ws.bound = make(map[*Region]struct{})
	}
	ws.bound[w] = struct{}{}
}

func (ws *Windows) remove(w *Region) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.bound, w)
}
