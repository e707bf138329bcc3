package stag

import "context"

// The state of a region is one word, so that a pin and the look at the region's
// validity are one atomic step:
//
//	 63 62           32 31            0
//	+-+---------------+---------------+
//	|I|     holds     |     pins      |
//	+-+---------------+---------------+
//
// Pins and holds taken after INVALID was set are undone by who took them. When
// INVALID is set and a count falls to zero, the waiters look again.
const (
	invalid uint64 = 1 << 63

	onePin  uint64 = 1
	oneHold uint64 = 1 << 32

	pins  = oneHold - onePin
	holds = invalid - oneHold
)

// Valid reports whether the STag can still be used.
func (r *Region) Valid() bool { return r.state.Load()&invalid == 0 }

// Pin keeps the region VALID until Unpin, or reports false if it is not. A pin
// covers one copy and is never held while its holder waits for a peer: Invalidate
// waits for it.
func (r *Region) Pin() bool { return r.take(onePin, pins) }

// Unpin ends a Pin that returned true.
func (r *Region) Unpin() { r.drop(onePin, pins) }

// Hold says that a work request refers to the octets, or reports false if the
// region is INVALID, or a window: work requests name the region behind it
// (draft-hilland-rddp-verbs section 8.1.3.2). [Table.Close] waits for Release; Invalidate
// does not.
func (r *Region) Hold() bool { return r.HoldN(1) }

// HoldN is n Holds in one step.
func (r *Region) HoldN(n uint32) bool {
	return !r.IsWindow() && r.take(uint64(n)*oneHold, holds)
}

// Release ends a Hold that returned true.
func (r *Region) Release() { r.ReleaseN(1) }

// ReleaseN ends n Holds in one step.
func (r *Region) ReleaseN(n uint32) { r.drop(uint64(n)*oneHold, holds) }

func (r *Region) take(some, count uint64) bool {
	// Looking first keeps users of a dead STag from moving the counts that an
	// Invalidate waits for.
	if r.state.Load()&invalid != 0 {
		return false
	}
	if r.state.Add(some)&invalid == 0 {
		return true
	}
	r.drop(some, count)
	return false
}

func (r *Region) drop(some, count uint64) {
	if s := r.state.Add(-some); s&invalid != 0 && s&count == 0 {
		r.wake()
	}
}

// kill makes the region INVALID: no pin or hold succeeds from now on. It reports
// false, and changes nothing, while windows are bound to the region.
func (r *Region) kill() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.windows > 0 {
		return false
	}
	r.state.Or(invalid)
	return true
}

// drain waits until the count is zero. It belongs after kill, or it might wait for
// ever. A context that is done matters only if there is something to wait for.
func (r *Region) drain(ctx context.Context, count uint64) error {
	for {
		calm := r.watch(count)
		if calm == nil {
			return nil
		}
		select {
		case <-calm:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watch returns a channel that is closed when the count may have become zero, or
// nil if it is zero.
func (r *Region) watch(count uint64) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Load()&count == 0 {
		return nil
	}
	if r.calm == nil {
		r.calm = make(chan struct{})
	}
	return r.calm
}

func (r *Region) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calm != nil {
		close(r.calm)
		r.calm = nil
	}
}
