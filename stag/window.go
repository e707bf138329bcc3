package stag

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// A Window is a memory window: an STag that a stream binds to a part of a region, to
// grant its peer access to that part for a while (draft-hilland-rddp-verbs section 7.10).
// Its own bounds and rights decide what it grants; those of the region only limit what
// may be bound. It is of type 2B: while bound, it serves only the stream that bound it. No
// work request gathers from a window or scatters into it. It is made by
// [Table.AllocateWindow]. All methods may be called from any goroutine.
type Window struct{ entry }

// AllocateWindow allocates a window of a PD. It is INVALID until it is bound.
func (t *Table) AllocateWindow(pd uint64) (*Window, error) {
	w := &Window{entry{table: t, scope: Scope{PD: pd}, most: Remote, maxLen: math.MaxInt64, window: true}}
	if err := w.start(); err != nil {
		return nil, err
	}
	return w, nil
}

// Prepare gives a binding of n octets its STag, which is INVALID until [Table.Bind] puts the
// binding into force. For key see [FastRegion.Prepare]. Prepare fails if the Window is closed, or
// if no randomness is available. Bind reports what is wrong with the binding itself.
func (w *Window) Prepare(n int, access Access, base uint64, key *uint8) (*Region, error) {
	return w.prepare(&Region{size: uint64(max(n, 0)), access: access, base: base}, key)
}

// Windows are the windows that are bound to one stream. The zero value is empty. All
// methods may be called from any goroutine.
type Windows struct {
	mu    lockorder.Mutex[lockorder.Windows]
	bound map[*Region]struct{}
}

// Len returns how many windows are bound, including those whose invalidation waits for a
// placement.
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
