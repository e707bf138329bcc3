package stag

import "context"

// Invalidate revokes every access to the region. Once it returns nil, no access
// succeeds and no placement is in flight (RFC 5040 section 8.1.1 (6)). The STag is
// invalid at once in any case; ctx bounds only the wait for placements: copies in
// progress and, for a Buffer, calls of WriteAt.
//
// The region stays in the table, INVALID, and its index stays in use until
// [Table.Close]. Invalidating it again is not an error. Invalidate fails with [ErrBound]
// while memory windows are bound to the region.
func (t *Table) Invalidate(ctx context.Context, r *Region) error {
	if !r.kill() {
		return ErrBound
	}
	if err := r.drain(ctx, pins); err != nil {
		return err
	}
	r.unbind()
	return nil
}

// InvalidateSTag performs an Invalidate Local STag or, if remote is set, that of an
// arriving Send with Invalidate (RFC 5040 section 5.3). user is the requesting stream.
// If it returns None, the guarantee of [Table.Invalidate] holds.
//
// It returns InvalidSTag for an STag that is unknown, closed, or has another key.
// It returns NotInvalidatable for an STag of another PD or stream, one to which memory windows
// are bound and, for a remote request, one that several streams may use (section 8.1.1 (7))
// or that grants a peer no right. A window belongs to its stream while it is bound, and
// otherwise to its PD. An STag that is already INVALID may be invalidated again locally, as
// draft-hilland-rddp-verbs section 7.8 allows; for a peer it is InvalidSTag, since
// RFC 5040 section 7.2 requires it to be valid.
//
// It waits for placements in flight but for nothing else.
func (t *Table) InvalidateSTag(user Scope, s STag, remote bool) Violation {
	r := t.lookup(s)
	if r == nil || remote && !r.Valid() {
		return InvalidSTag
	}
	if !r.owner().admits(user) {
		return NotInvalidatable
	}
	if remote && (r.scope.Stream == 0 || r.access&Remote == 0) {
		return NotInvalidatable
	}
	if !r.kill() {
		return NotInvalidatable
	}
	_ = r.drain(context.Background(), pins) // fails only with its context
	r.unbind()
	return None
}

// owner returns the scope that may invalidate the region.
func (r *Region) owner() Scope {
	if r.entry != nil && !r.Valid() {
		return r.entry.scope
	}
	return r.scope
}

// Close ends all access of peers to the region, waits under ctx until every work request
// that names it has completed, invalidates it, and removes it from the table; its index
// is not used again for a long time. Once Close returns nil, the octets belong to the
// caller alone. If it fails with the error of ctx, no peer can access the region any more,
// work requests that were posted before may still use it, and it may be closed again. If it
// fails with [ErrBound] nothing has changed. Closing a closed region is not an error.
func (t *Table) Close(ctx context.Context, r *Region) error {
	if !r.beginClose() {
		return ErrBound
	}
	return t.endClose(ctx, r)
}

// endClose is the rest of Close, for a region that is CLOSING.
func (t *Table) endClose(ctx context.Context, r *Region) error {
	for held := true; held; {
		err := r.drain(ctx, holds)
		if err == nil {
			held, err = r.endClose() // it fails if one of those requests has bound a window to it
		}
		if err != nil {
			return err
		}
	}
	if err := r.drain(ctx, pins); err != nil {
		return err
	}
	r.unbind()
	t.remove(r)
	return nil
}
