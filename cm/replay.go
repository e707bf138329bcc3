package cm

import "time"

// A CacheKey identifies a Request of mode A.
type CacheKey struct {
	KeyID uint64
	Nonce [16]byte
}

// A CacheStore remembers the accepted Requests of mode A, instead of the cache in memory. It must
// outlive the process, because with a store mode A is available from the start. Servers that share
// a key should share a store: otherwise each of them accepts a Request that was recorded at
// another one.
type CacheStore interface {
	// Insert adds the key atomically, and reports whether it was new. The store keeps it at least
	// until the given time. After an error the Request is refused.
	Insert(key CacheKey, until time.Time) (isNew bool, err error)
}

// A replayCache has two generations. Each accepts keys for at least one lifetime, and is kept for
// another one, so that a key stays from one to two lifetimes. No key is removed earlier: a
// generation that is full accepts no more.
type replayCache struct {
	most       int   // keys of one generation
	lifetime   int64 // nanoseconds
	young, old map[CacheKey]struct{}
	since      int64 // when the young generation began
}

// insert adds a new key. now goes back only by a step.
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

// rotate forgets the old generation once the young one is a lifetime old. It reuses the map, so
// the memory does not exceed what the largest generations have needed.
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
	if age >= 2*c.lifetime { // its last key is older than a lifetime, too
		clear(c.old)
	}
	c.since = now
}
