package regionkey

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/lru"
)

// DefaultCache is how many Sealers a Cache holds by default.
const DefaultCache = 4096

// A CacheKey identifies a Sealer. A side that is both client and server of a connection has two
// Sealers for the same region, operation and direction; the owner distinguishes them.
type CacheKey struct {
	Conn       uint64 // the number of the connection
	Region     uint64
	Epoch      Epoch
	Op         OpType
	Owner, Dir uint8
}

// A Cache holds Sealers, so that they need not be derived for each operation, and evicts the least
// recently used one. It does not affect the nonces, which count per connection.
type Cache struct {
	sealers          *lru.Map[CacheKey, *Sealer]
	byRegion, byConn index
}

// An index lists the keys of the Cache by one of their numbers.
type index map[uint64]map[CacheKey]struct{}

func (x index) add(number uint64, k CacheKey) {
	of := x[number]
	if of == nil {
		of = make(map[CacheKey]struct{})
		x[number] = of
	}
	of[k] = struct{}{}
}

func (x index) remove(number uint64, k CacheKey) {
	of := x[number]
	delete(of, k)
	if len(of) == 0 {
		delete(x, number)
	}
}

// NewCache returns a Cache of at most that many Sealers; 0: DefaultCache.
func NewCache(most int) *Cache {
	if most <= 0 {
		most = DefaultCache
	}
	return &Cache{sealers: lru.New[CacheKey, *Sealer](most), byRegion: make(index), byConn: make(index)}
}

// Format prints how many Sealers there are, whatever the verb.
func (c *Cache) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "regionkey.Cache of %d", c.Len()) }

// Len returns the number of Sealers.
func (c *Cache) Len() int { return c.sealers.Len() }

// Get returns a Sealer; nil: it must be derived.
func (c *Cache) Get(k CacheKey) *Sealer {
	s, _ := c.sealers.Get(k)
	return s
}

// Put adds a Sealer, or replaces it.
func (c *Cache) Put(k CacheKey, s *Sealer) {
	if c.Get(k) == nil && c.sealers.Full() {
		oldest, _ := c.sealers.Oldest()
		c.drop(oldest)
	}
	c.sealers.Put(k, s)
	c.byRegion.add(k.Region, k)
	c.byConn.add(k.Conn, k)
}

func (c *Cache) drop(k CacheKey) {
	c.sealers.Delete(k)
	c.byRegion.remove(k.Region, k)
	c.byConn.remove(k.Conn, k)
}

// DropBefore removes the Sealers of a region for epochs before oldest, the oldest valid one: see
// Ring.Expire. Its cost is proportional to the number of Sealers of the region.
func (c *Cache) DropBefore(region uint64, oldest Epoch) {
	for k := range c.byRegion[region] {
		if k.Epoch < oldest {
			c.drop(k)
		}
	}
}

// DropRegion removes the Sealers of a region.
func (c *Cache) DropRegion(region uint64) {
	for k := range c.byRegion[region] {
		c.drop(k)
	}
}

// DropConn removes the Sealers of a connection that has ended.
func (c *Cache) DropConn(conn uint64) {
	for k := range c.byConn[conn] {
		c.drop(k)
	}
}
