package stag

import "context"

// The state of a region is one word, so that a pin and the check of the region's
// validity are one atomic step:
//
//	 63 62 61           32 31            0
//	+-+-+-----------------+---------------+
//	|I|C|      holds      |     pins      |
//	+-+-+-----------------+---------------+
//
//	VALID --Close--> CLOSING --no holds left--> INVALID
//	  |  <--windows----  |
//	  +---Invalidate-----+--------------------> INVALID
//
// C is set while the region is CLOSING: no peer can access it any more, and no new work
// request may name it. Earlier work requests are still executed; if one of them binds a
// window, the region is VALID again. I is set once the region is INVALID. A goroutine that
// takes a pin after I or C was set undoes it, if that bit refuses the pin. When I or C is set
// and a count falls to zero, the waiters check again.
const (
	invalid uint64 = 1 << 63
	closing uint64 = 1 << 62

	onePin  uint64 = 1
	oneHold uint64 = 1 << 32

	pins  = oneHold - onePin
	holds = closing - oneHold
)

// Valid reports whether the STag can still be used.
func (r *Region) Valid() bool { return r.state.Load()&(invalid|closing) == 0 }

// Closing reports whether [Table.Close] has begun, or has ended. If it has not begun, a later Close
// waits for the holds that exist now.
func (r *Region) Closing() bool { return r.state.Load()&closing != 0 }

// Usable reports whether a work request that was posted before may still use the octets:
// the region is VALID, or it is being closed and [Table.Close] waits for the request. A
// window is never usable: work requests name the region behind it
// (draft-hilland-rddp-verbs section 8.1.3.2).
func (r *Region) Usable() bool { return !r.isInvalid() && !r.IsWindow() }

func (r *Region) isInvalid() bool { return r.state.Load()&invalid != 0 }

func (r *Region) isHeld() bool { return r.state.Load()&holds != 0 }

// Pin keeps the region VALID until Unpin, or reports false if it is not. A pin
// covers one copy and is never held while its holder waits for a peer: Invalidate
// waits for it.
func (r *Region) Pin() bool { return r.pin(invalid | closing) }

// PinClosing is Pin for a region that may be CLOSING: [Table.Close] waits for it, and may fail.
func (r *Region) PinClosing() bool { return r.pin(invalid) }

// Unpin ends a Pin that returned true.
func (r *Region) Unpin() { r.drop(onePin, pins) }

// Hold records that a work request refers to the octets, whether the region is VALID or not:
// a region that a work request registers may still be INVALID when another request names it.
// [Region.Usable] checks that when the request is executed. [Table.Close] waits for Release;
// Invalidate does not.
func (r *Region) Hold() { r.HoldN(1) }

// HoldN is n Holds in one step.
func (r *Region) HoldN(n uint32) { r.state.Add(uint64(n) * oneHold) }

// Release ends a Hold.
func (r *Region) Release() { r.ReleaseN(1) }

// ReleaseN ends n Holds in one step.
func (r *Region) ReleaseN(n uint32) { r.drop(uint64(n)*oneHold, holds) }

// pin is Pin, refused in the states of the mask.
func (r *Region) pin(refused uint64) bool {
	// This first check keeps users of an invalid STag from changing the count that an
	// Invalidate waits for.
	if r.state.Load()&refused != 0 {
		return false
	}
	if r.state.Add(onePin)&refused == 0 {
		return true
	}
	r.drop(onePin, pins)
	return false
}

func (r *Region) drop(some, count uint64) {
	if s := r.state.Add(-some); s&(invalid|closing) != 0 && s&count == 0 {
		r.wake()
	}
}

// kill makes the region INVALID: no pin succeeds from now on. It reports
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

// beginClose makes the region CLOSING. It reports false, and changes nothing, while
// windows are bound to the region, unless a Close began before they were bound: endClose then decides.
func (r *Region) beginClose() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.windows > 0 && !r.Closing() {
		return false
	}
	r.state.Or(closing)
	return true
}

// endClose makes a CLOSING region that no work request names INVALID. If windows are bound to the region,
// endClose makes it VALID again and fails, as does every waiting Close. held is true if a work request
// names the region, although none did a moment ago: it was being posted when the Close began, or was posted
// after another Close had failed.
func (r *Region) endClose() (held bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.windows > 0 {
		r.state.And(^closing)
		r.wakeLocked()
	}
	switch s := r.state.Load(); {
	case s&closing == 0:
		return false, ErrBound
	case s&holds != 0:
		return true, nil
	}
	r.state.Or(invalid)
	return false, nil
}

// drain waits until the count is zero. Call it after kill or beginClose, or it might wait
// for ever. A context that is done matters only if there is something to wait for.
func (r *Region) drain(ctx context.Context, count uint64) error {
	for {
		drained := r.whenZero(count)
		if drained == nil {
			return nil
		}
		select {
		case <-drained:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// whenZero returns a channel that is closed when the count may have become zero, or
// nil if it is zero, or need not become zero because the region is VALID again.
func (r *Region) whenZero(count uint64) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.state.Load(); s&count == 0 || s&(invalid|closing) == 0 {
		return nil
	}
	if r.drained == nil {
		r.drained = make(chan struct{})
	}
	return r.drained
}

func (r *Region) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wakeLocked()
}

func (r *Region) wakeLocked() {
	if r.drained != nil {
		close(r.drained)
		r.drained = nil
	}
}
