package stag

// A Blank is a region without octets: an STag that was allocated ahead, and that is
// given octets as part of the work of a stream (fast registration,
// draft-hilland-rddp-verbs section 7.3.2), again and again. It is made by
// [Table.Allocate]. All methods may be called from any goroutine.
type Blank struct {
	entry
	flush Flusher
	guard Watch
	dirty func(off, n int64)
}

// Allocate makes an STag that is INVALID until octets are registered under it: at
// most maxLen of them, with rights out of o.Access. That is the Remote Access Flag of
// draft-hilland-rddp-verbs section 7.3.2.1: what is not in o.Access will never be
// granted. o.BaseTO does not count; each registration brings its own.
func (t *Table) Allocate(maxLen uint64, o Options) (*Blank, error) {
	if maxLen == 0 {
		return nil, errEmpty
	}
	if !o.Access.sound() {
		return nil, o.Access.unsound()
	}
	b := &Blank{
		entry: entry{table: t, scope: o.Scope, most: o.Access, maxLen: maxLen},
		flush: o.Flusher, guard: o.Watch, dirty: o.Dirty,
	}
	if err := b.start(); err != nil {
		return nil, err
	}
	return b, nil
}

// Prepare names the registration of mem that [Table.Enable] will put into force:
// until then its STag is INVALID. It fails when the Blank is closed, or without
// randomness; what is wrong with the registration itself, Enable tells.
func (b *Blank) Prepare(mem []byte, access Access, base uint64) (*Region, error) {
	return b.region(&Region{mem: mem, size: uint64(len(mem))}, access, base)
}

// PrepareBuffer does for a Buffer what Prepare does for memory. Its size is asked
// once, here.
func (b *Blank) PrepareBuffer(buf Buffer, access Access, base uint64) (*Region, error) {
	size, err := sizeOf(buf)
	if err != nil {
		return nil, err
	}
	return b.region(&Region{buf: buf, size: size}, access, base)
}

func (b *Blank) region(r *Region, access Access, base uint64) (*Region, error) {
	r.access, r.base, r.scope = access, base, b.scope
	r.flush, r.guard, r.dirty = b.flush, b.guard, b.dirty
	return b.prepare(r)
}

// Enable puts a registration that [Blank.Prepare] made into force, on behalf of the
// stream who. The STag must be INVALID, and the stream one that may use it.
func (t *Table) Enable(who Scope, r *Region) error {
	e := r.entry
	if e == nil || e.table != t || e.window {
		return errNotPrepared
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.admit(who, r); err != nil {
		return err
	}
	if !r.access.sound() {
		return r.access.unsound()
	}
	e.enable(r)
	return nil
}
