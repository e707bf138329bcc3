package stag

// A FastRegion is an STag that is allocated ahead, for a region without octets, and that is
// given octets as part of the work of a stream (fast registration,
// draft-hilland-rddp-verbs section 7.3.2), again and again. It is made by
// [Table.Allocate]. All methods may be called from any goroutine.
type FastRegion struct {
	entry
	flush   Flusher
	watch   Watch
	dirty   func(off, n int64)
	through func(off, n int64)
	failed  func(off, n int64, err error)
}

// Allocate makes an STag that is INVALID until octets are registered under it: at
// most maxLen of them, with rights out of o.Access. That is the Remote Access Flag of
// draft-hilland-rddp-verbs section 7.3.2.1: what is not in o.Access will never be
// granted. o.BaseTO does not count; each registration brings its own.
func (t *Table) Allocate(maxLen uint64, o Options) (*FastRegion, error) {
	if maxLen == 0 {
		return nil, errEmpty
	}
	if !o.Access.sound() {
		return nil, o.Access.unsound()
	}
	b := &FastRegion{
		entry: entry{table: t, scope: o.Scope, most: o.Access, maxLen: maxLen},
		flush: o.Flusher, watch: o.Watch, dirty: o.Dirty, through: o.Through, failed: o.Failed,
	}
	if err := b.start(); err != nil {
		return nil, err
	}
	return b, nil
}

// Prepare names the registration of mem that [Table.Enable] will put into force:
// until then its STag is INVALID. Its key is one that a peer can hardly predict, or the one at
// key that the caller has chosen (draft-hilland-rddp-verbs section 7.2): to choose the key of a
// registration that a peer knows of is to let that peer use the new one, too. Prepare fails when
// the FastRegion is closed, or without randomness; what is wrong with the registration itself,
// Enable tells.
func (b *FastRegion) Prepare(mem []byte, access Access, base uint64, key *uint8) (*Region, error) {
	r := b.registration(access, base)
	r.mem, r.size = mem, uint64(len(mem))
	return b.prepare(r, key)
}

// PrepareBuffer does for a Buffer what Prepare does for memory. The caller has asked buf for its
// size before, since that is a method of the program, which must not be called under a lock, or
// when something has been reserved.
func (b *FastRegion) PrepareBuffer(buf Buffer, size int64, access Access, base uint64, key *uint8) (*Region, error) {
	if buf == nil {
		return nil, errNoBuffer
	}
	if err := checkSize(size); err != nil {
		return nil, err
	}
	r := b.registration(access, base)
	r.buf, r.size = buf, uint64(size)
	return b.prepare(r, key)
}

// registration is one without octets.
func (b *FastRegion) registration(access Access, base uint64) *Region {
	return &Region{
		access: access, base: base, scope: b.scope,
		flush: b.flush, watch: b.watch, dirty: b.dirty, through: b.through, failed: b.failed,
	}
}

// NextKey draws a key for the next registration, for a caller that tells a peer the STag before
// it prepares that: one that a peer can hardly predict, and that is none of the last 128 that were
// drawn, prepared or chosen. It fails if b is nil, and without randomness.
func (b *FastRegion) NextKey() (uint8, error) {
	if b == nil {
		return 0, errNotFast
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.key(nil)
}

// Enable puts a registration that [FastRegion.Prepare] made into force, on behalf of the
// stream user. The STag must be INVALID, and the stream one that may use it.
func (t *Table) Enable(user Scope, r *Region) error {
	e := r.entry
	if e == nil || e.table != t || e.window {
		return errNotPrepared
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.admit(user, r); err != nil {
		return err
	}
	if !r.access.sound() {
		return r.access.unsound()
	}
	e.enable(r)
	return nil
}
