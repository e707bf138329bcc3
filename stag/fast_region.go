package stag

// A FastRegion is an STag that is allocated in advance, without octets. Work requests of a
// stream register octets under it, repeatedly (fast registration,
// draft-hilland-rddp-verbs section 7.3.2). It is made by
// [Table.Allocate]. All methods may be called from any goroutine.
type FastRegion struct {
	entry
	flush   Flusher
	watch   Watch
	dirty   func(off, n int64)
	through func(off, n int64)
	failed  func(off, n int64, err error)
}

// Allocate allocates an STag that is INVALID until octets are registered under it: at
// most maxLen octets, with rights of o.Access. o.Access is the Remote Access Flag of
// draft-hilland-rddp-verbs section 7.3.2.1: a right that it lacks is never granted.
// o.BaseTO is ignored; each registration has its own.
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

// Prepare gives a registration of mem its STag, which is INVALID until [Table.Enable] puts the
// registration into force. Its key is one that a peer can hardly predict, or *key if
// the caller chooses it (draft-hilland-rddp-verbs section 7.2): choosing the key of an earlier
// registration that a peer knows lets that peer use the new one, too. Prepare fails if the
// FastRegion is closed, or if no randomness is available. Enable reports what is wrong with the
// registration itself.
func (b *FastRegion) Prepare(mem []byte, access Access, base uint64, key *uint8) (*Region, error) {
	r := b.registration(access, base)
	r.mem, r.size = mem, uint64(len(mem))
	return b.prepare(r, key)
}

// PrepareBuffer is like Prepare, for a Buffer. The caller must have called buf.Size before, since
// that is code of the program, which must not be called under a lock, or after something has been
// reserved.
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

// registration returns a registration without octets.
func (b *FastRegion) registration(access Access, base uint64) *Region {
	return &Region{
		access: access, base: base, scope: b.scope,
		flush: b.flush, watch: b.watch, dirty: b.dirty, through: b.through, failed: b.failed,
	}
}

// NextKey draws a key for the next registration, for a caller that tells a peer the STag before
// it prepares the registration. A peer can hardly predict the key, and it differs from the last 128
// that were drawn, prepared or chosen. It fails if b is nil, or if no randomness is available.
func (b *FastRegion) NextKey() (uint8, error) {
	if b == nil {
		return 0, errNotFast
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.key(nil)
}

// Enable puts a registration that [FastRegion.Prepare] made into force, on behalf of the
// stream user. The STag must be INVALID, and its scope must admit the stream.
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
