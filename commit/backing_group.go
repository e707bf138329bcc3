package commit

import "errors"

// A Group is group commit for octets that are not written through a backing of this package:
// the user's own memory, or a file in which holes are punched. One sync serves all Flushes
// that came before it began, and a Flush of octets that have not changed since they were
// durable needs none. Use it as the Durable of a region of memory, or of a Buffer that is not a
// backing; see MROptions. The region reports to it what peers write, by Began and Wrote.
//
// All methods may be called from any goroutine.
type Group struct{ *group }

// NewGroup returns a Group for size octets. sync makes everything durable that was written
// before it is called, and is never called concurrently. To choose the status that the peer
// receives after a failed sync, return an [*Error] or an errno. [Flusher] says after which errors
// octets are lost.
func NewGroup(size int64, sync func() error) (*Group, error) {
	if size <= 0 || sync == nil {
		return nil, errors.New("commit: a group needs octets, and a sync for them")
	}
	return &Group{newGroup(size, true, func([]Range) error { return syncs(sync) })}, nil
}

// Touched reports that local code has changed n octets at off, so that the next Flush of any of
// them syncs. Call it after the change, and before the change is reported as done. If a sync may
// fail in between, call Began and Wrote instead.
func (g *Group) Touched(off, n int64) { g.wrote(g.began(), off, n, nil) }

// Began implements [stag.Watch].
func (g *Group) Began() uint64 { return g.began() }

// Wrote implements [stag.Watch]: the octets of a write that failed, or during which a sync
// failed, are lost until they are written again.
func (g *Group) Wrote(began uint64, off, n int64, err error) { g.wrote(began, off, n, err) }

// Close refuses new Flushes, and waits until those that have begun have ended. It may be called again.
func (g *Group) Close() error {
	g.close()
	return nil
}
