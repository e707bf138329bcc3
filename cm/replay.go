package cm

import "time"

// A CacheKey is what tells one Request of mode A from all others.
type CacheKey struct {
	KeyID uint64
	Nonce [16]byte
}

// A CacheStore remembers the Requests of mode A that were accepted, in place of the cache in
// memory. It must outlive the process, for with a store mode A is available from the start.
// Servers that share a key may share a store: otherwise each of them accepts a Request that
// was recorded at another one.
type CacheStore interface {
	// Insert adds the key, in one step, and reports whether it was not there. The store keeps it
	// until that time at least. After an error the Request is refused.
	Insert(key CacheKey, until time.Time) (isNew bool, err error)
}

// A replayCache has two generations. Each takes keys for one lifetime or more, and is kept for
// another one, so that a key stays from one to two lifetimes. Nothing leaves earlier: a
// generation that is full takes no more.
type replayCache struct {
	most       int   // keys of one generation
	lifetime   int64 // nanoseconds
	young, old map[CacheKey]struct{}
	since      int64 // that the young one takes keys
}

// insert adds a key that is not there. now never goes back, but by a step.
func (c *replayCache) insert(k CacheKey, now int64) error {
	c.rotate(now)
	if _, found := c.young[k]; found {
		return &Error{Reason: ReasonReplay}
	}
	if _, found := c.old[k]; found {
		return &Error{Reason: ReasonReplay}
	}
	if len(c.young) >= c.most {
		return &Error{Reason: ReasonCacheFull}
	}
	if c.young == nil {
		c.young = make(map[CacheKey]struct{})
	}
	c.young[k] = struct{}{}
	return nil
}

// rotate forgets the old generation once the young one is a lifetime old. The map is used
// again, so that the memory stays what the most keys have needed.
func (c *replayCache) rotate(now int64) {
	age := now - c.since
	if age < 0 { // after a step back keys stay longer
		c.since = now
	}
	if age < c.lifetime {
		return
	}
	c.young, c.old = c.old, c.young
	clear(c.young)
	if age >= 2*c.lifetime { // the last key came before half of that
		clear(c.old)
	}
	c.since = now
}
