package stag

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// An entry is an index of the table that its owner keeps while the Regions that it names
// change. Each enable creates a new [Region] with a new key, which replaces the previous
// one in the table. Regions never change, so an old Region, and its STag, stay INVALID for
// ever, and look-ups and pins need not know about entries.
//
// A Region is prepared when its work request is posted, so that its STag is known, and
// enabled when that request is executed.
type entry struct {
	table  *Table
	scope  Scope  // a bound window has a narrower one
	most   Access // the rights that may be granted
	maxLen uint64
	window bool

	// pending is held by the work requests that have yet to enable or invalidate the entry.
	// It has no octets.
	pending Region

	mu       lockorder.Mutex[lockorder.Entry]
	live     *Region // the one in the table, VALID or INVALID
	keys     keys
	prepared uint64 // number of Regions prepared so far
	revoked  uint64 // Regions prepared up to this number can no longer be enabled
}

var (
	errNotPrepared = errors.New("stag: not a region that was prepared for this")
	errRevoked     = errors.New("stag: the STag was invalidated or closed before the work request was executed")
	errNotFast     = errors.New("stag: the region is not one for fast registration")
	errNotInvalid  = errors.New("stag: the STag is VALID already")
	errOtherScope  = errors.New("stag: the STag belongs to another PD or stream")
	errRights      = errors.New("stag: rights not allowed")
	errTooLong     = errors.New("stag: longer than the STag was allocated for")
	errWrap        = errors.New("stag: the range wraps")
)

// start gives a new entry its index, INVALID (draft-hilland-rddp-verbs section 7.3.2.1).
func (e *entry) start() error {
	empty := &Region{entry: e, scope: e.scope}
	empty.state.Store(invalid)
	if err := e.table.insert(empty, nil); err != nil {
		return err
	}
	e.live = empty
	e.keys.start(empty.stag.Key())
	return nil
}

// Live returns the Region that the entry has in the table: the one that was enabled last,
// VALID or INVALID, or, if none was enabled, an INVALID one without octets.
func (e *entry) Live() *Region {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.live
}

// prepare gives a Region that is to be enabled its STag. key is nil if any key will do.
func (e *entry) prepare(r *Region, key *uint8) (*Region, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.live.Closing() {
		return nil, ErrInvalid
	}
	k, err := e.key(key)
	if err != nil {
		return nil, err
	}
	e.prepared++
	r.entry, r.turn = e, e.prepared
	r.stag = STag(e.live.stag.Index()<<8 | uint32(k))
	r.state.Store(invalid)
	return r, nil
}

// key returns the chosen key, or a key that is hard to predict. Preconditions: e.mu is held.
func (e *entry) key(chosen *uint8) (uint8, error) {
	if chosen != nil {
		e.keys.choose(*chosen)
		return *chosen, nil
	}
	random, err := e.table.randomByte()
	if err != nil {
		return 0, err
	}
	return e.keys.draw(random), nil
}

// admit checks whether r may replace the live Region. Preconditions: e.mu is
// held.
func (e *entry) admit(user Scope, r *Region) error {
	switch {
	case r.turn <= e.revoked:
		return errRevoked
	case !e.scope.admits(user):
		return errOtherScope
	case !e.live.isInvalid():
		return errNotInvalid
	case r.size == 0:
		return errEmpty
	case r.size > e.maxLen:
		return errTooLong
	case !e.most.allows(r.access):
		return fmt.Errorf("%w: %v, where no more than %v may be granted", errRights, r.access, e.most)
	}
	if _, carry := bits.Add64(r.base, r.size, 0); carry != 0 {
		return errWrap
	}
	return nil
}

// enable makes r the live Region: VALID, or CLOSING if the entry is being closed.
// Preconditions: e.mu is held, and admit has agreed. It changes the state before the table has r:
// otherwise InvalidateSTag, which does not lock e.mu, could find r INVALID, and r would become VALID after it.
func (e *entry) enable(r *Region) {
	r.state.Or(e.live.state.Load() & closing)
	r.state.And(^invalid)
	e.table.replace(e.live, r)
	e.live = r
}

// Pending returns what a work request must hold until it has enabled or invalidated the STag
// of r: the entry of the table, if the STag of r can be enabled repeatedly, otherwise r.
func (r *Region) Pending() *Region {
	if r.entry == nil {
		return r
	}
	return &r.entry.pending
}

// Invalidate revokes every access, as [Table.Invalidate] does, and ensures that no Region
// prepared up to now can be enabled.
func (e *entry) Invalidate(ctx context.Context) error {
	live, err := e.revoke()
	if err != nil {
		return err
	}
	return e.table.Invalidate(ctx, live)
}

// Close releases the index, as [Table.Close] does, after the work requests that were to
// enable or invalidate the entry. From the start of Close peers have no access to the live
// Region, and nothing can be prepared any more, unless Close fails with [ErrBound]. Octets of
// earlier Regions are free when the work requests that name them have completed.
func (e *entry) Close(ctx context.Context) error {
	if !e.beginClose() {
		return ErrBound
	}
	for {
		switch held, err := e.endClose(); {
		case err != nil:
			return err
		case held == nil:
			return e.table.endClose(ctx, e.Live())
		default:
			if err := held.drain(ctx, holds); err != nil {
				return err
			}
		}
	}
}

// beginClose is [Region.beginClose] for the live Region, and for any that is enabled later.
func (e *entry) beginClose() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.live.beginClose() {
		return false
	}
	e.pending.state.Or(closing)
	return true
}

// endClose is [Region.endClose] for the live Region, once no work request is left to enable or invalidate the entry.
// After that no Region prepared up to now can be enabled. If work requests still name a Region, endClose returns it.
// If it fails it has undone beginClose.
func (e *entry) endClose() (held *Region, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.live.Closing() {
		if e.pending.isHeld() {
			return &e.pending, nil
		}
		if e.live.isHeld() {
			return e.live, nil
		}
	}
	late, err := e.live.endClose()
	switch {
	case err != nil:
		e.pending.state.And(^closing)
		e.pending.wake()
	case late:
		return e.live, nil
	default:
		e.revoked = e.prepared
	}
	return nil, err
}

func (e *entry) revoke() (*Region, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.live.kill() {
		return nil, ErrBound
	}
	e.revoked = e.prepared
	return e.live, nil
}
