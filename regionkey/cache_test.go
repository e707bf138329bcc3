package regionkey

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// requireIndexed requires that the indexes of the Cache match its contents.
func requireIndexed(t *testing.T, c *Cache) {
	t.Helper()
	inRegions, inConns := 0, 0
	for region, of := range c.byRegion {
		require.NotEmpty(t, of)
		inRegions += len(of)
		for k := range of {
			require.Equal(t, region, k.Region)
		}
	}
	for conn, of := range c.byConn {
		require.NotEmpty(t, of)
		inConns += len(of)
		for k := range of {
			require.Equal(t, conn, k.Conn)
		}
	}
	require.Equal(t, c.Len(), inRegions)
	require.Equal(t, c.Len(), inConns)
	for k := range c.sealers.All() {
		_, inRegion := c.byRegion[k.Region][k]
		_, inConn := c.byConn[k.Conn][k]
		require.True(t, inRegion && inConn, "%+v", k)
	}
}

func TestKEY_19_CacheIsBounded(t *testing.T) {
	c := NewCache(50)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 5000 {
		k := CacheKey{Conn: rnd.Uint64N(5), Region: rnd.Uint64N(8), Epoch: Epoch(1 + rnd.IntN(4)), Op: Read, Owner: Initiator, Dir: uint8(1 + rnd.IntN(2))}
		if c.Get(k) == nil {
			c.Put(k, new(Sealer))
		}
		require.LessOrEqual(t, c.Len(), 50)
		switch i % 100 {
		case 0:
			c.DropBefore(k.Region, k.Epoch)
			for k2 := range c.sealers.All() {
				require.False(t, k2.Region == k.Region && k2.Epoch < k.Epoch)
			}
		case 33:
			c.DropConn(k.Conn)
			for k2 := range c.sealers.All() {
				require.NotEqual(t, k.Conn, k2.Conn)
			}
		case 66:
			c.DropRegion(k.Region)
			require.Nil(t, c.byRegion[k.Region])
		}
		requireIndexed(t, c)
	}
	require.Equal(t, DefaultCache, func() int {
		c := NewCache(0)
		for i := range uint64(DefaultCache + 10) {
			c.Put(CacheKey{Region: i}, new(Sealer))
		}
		return c.Len()
	}())
}

func TestKEY_19_WhatIsDropped(t *testing.T) {
	key := func(region uint64, e Epoch, conn uint64) CacheKey {
		return CacheKey{Conn: conn, Region: region, Epoch: e, Op: Read, Owner: Responder, Dir: Initiator}
	}
	c := NewCache(10)
	for _, k := range []CacheKey{key(1, 1, 1), key(1, 2, 1), key(1, 3, 2), key(2, 1, 1)} {
		c.Put(k, new(Sealer))
	}
	c.DropBefore(1, 2)
	require.Nil(t, c.Get(key(1, 1, 1)))
	require.NotNil(t, c.Get(key(1, 2, 1)), "it is still good")
	require.NotNil(t, c.Get(key(1, 3, 2)))
	require.NotNil(t, c.Get(key(2, 1, 1)), "it is of another region")
	c.DropConn(1)
	require.Equal(t, 1, c.Len())
	require.NotNil(t, c.Get(key(1, 3, 2)))

	// Each field distinguishes Sealers.
	c = NewCache(100)
	all := []CacheKey{{1, 1, 1, Read, 1, 1}, {2, 1, 1, Read, 1, 1}, {1, 2, 1, Read, 1, 1}, {1, 1, 2, Read, 1, 1}, {1, 1, 1, Write, 1, 1}, {1, 1, 1, Read, 2, 1}, {1, 1, 1, Read, 1, 2}}
	for _, k := range all {
		require.Nil(t, c.Get(k))
		c.Put(k, new(Sealer))
	}
	require.Equal(t, len(all), c.Len())

	// A Sealer that is replaced evicts no other one.
	c = NewCache(2)
	c.Put(all[0], new(Sealer))
	c.Put(all[1], new(Sealer))
	s := new(Sealer)
	c.Put(all[1], s)
	require.NotNil(t, c.Get(all[0]))
	require.Same(t, s, c.Get(all[1]))
}

// TestDropConnCostsWhatTheConnectionHas: others may have any number of Sealers, on a server of many clients.
func TestDropConnCostsWhatTheConnectionHas(t *testing.T) {
	const conns = 20_000
	c, s := NewCache(conns), new(Sealer)
	for i := range uint64(conns) {
		c.Put(CacheKey{Conn: i}, s)
	}
	begun, n := time.Now(), 0
	for range c.sealers.All() {
		n++
	}
	all := time.Since(begun)
	require.Equal(t, conns, n)
	begun = time.Now()
	for i := range uint64(conns) {
		c.DropConn(conns - i)
	}
	require.Less(t, time.Since(begun), conns/4*all, "to look at all Sealers takes %v", all)
	require.Equal(t, 1, c.Len())
}

// TestKEY_19_EvictionCostsTimeOnly: a Sealer that is derived again opens what the previous one has
// sealed.
func TestKEY_19_EvictionCostsTimeOnly(t *testing.T) {
	s := newScene(t)
	c := NewCache(1)
	k := CacheKey{Region: s.region, Epoch: 3, Op: Read, Owner: Responder, Dir: Responder}
	c.Put(k, s.sealer(t, Read, Responder, SuiteAES128))
	blob := c.Get(k).Seal(nil, []byte("data"), 0, nil)
	c.Put(CacheKey{}, new(Sealer))
	require.Nil(t, c.Get(k))
	c.Put(k, s.sealer(t, Read, Responder, SuiteAES128))
	plain, err := c.Get(k).OpenInPlace(blob, 0, nil)
	require.NoError(t, err)
	require.Equal(t, []byte("data"), plain)
	require.Zero(t, testing.AllocsPerRun(100, func() { c.Get(k) }))
}
