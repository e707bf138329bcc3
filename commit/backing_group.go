package commit

import "errors"

// A Group is group commit for octets that are not written through a backing of this package:
// memory of the user's own, or a file in which holes are punched. One sync serves all Flushes
// that came before it began, and a Flush of octets that have not changed since they were
// durable needs none. It is the Durable of a region of memory, or of a Buffer that is no backing; see
// MROptions. The region tells it of all that peers write, by Began and Wrote.
//
// All methods may be called from any goroutine.
type Group struct{ *group }

// NewGroup returns a Group for size octets. sync makes everything durable that was written
// before it is called, and is not called twice at once. To choose the status that the peer is
// told of a failed sync, let it return an [*Error] or an errno. After which of them octets are lost
// is as [Flusher] says.
func NewGroup(size int64, sync func() error) (*Group, error) {
	if size <= 0 || sync == nil {
		return nil, errors.New("commit: a group needs octets, and a sync for them")
	}
	return &Group{newGroup(size, true, func([]Range) error { return syncs(sync) })}, nil
}

// Touched tells of n octets at off that local code has changed. The next Flush of any of them is a
// sync. It is called after the change, and before the change is reported as done. If a sync may
// fail in between, Began and Wrote are to be called instead.
func (g *Group) Touched(off, n int64) { g.wrote(g.began(), off, n, nil) }

// Began is that of [stag.Watch].
func (g *Group) Began() uint64 { return g.began() }

// Wrote is that of [stag.Watch]: octets of a write that has failed, or during which a sync has
// failed, are lost until they are written again.
func (g *Group) Wrote(began uint64, off, n int64, err error) { g.wrote(began, off, n, err) }

// Close lets no more Flush begin, and waits for those that have. It may be called again.
func (g *Group) Close() error {
	g.close()
	return nil
}
