package cm

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

func TestCM_13_FaultyRings(t *testing.T) {
	good := Key{ID: 1, Secret: octets(0, 16), Primary: true}
	r, err := NewRing(good)
	require.NoError(t, err)
	at := time.Unix(1000, 0)
	for _, c := range []struct {
		want string
		keys []Key
	}{
		{"a ring without a key", nil},
		{"a secret of 15 octets", []Key{{ID: 1, Secret: octets(0, 15)}}},
		{"two keys have the ID 1", []Key{good, {ID: 1, Secret: octets(1, 16)}}},
		{"keys 1 and 2 are both primary", []Key{good, {ID: 2, Secret: octets(1, 16), Primary: true}}},
		{"a group of 256 octets", []Key{{ID: 1, Secret: octets(0, 16), Group: strings.Repeat("g", 256)}}},
		{"NotAfter is before NotBefore", []Key{{ID: 1, Secret: octets(0, 16), NotBefore: at, NotAfter: at.Add(-1)}}},
	} {
		_, err := NewRing(c.keys...)
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, r.Replace(c.keys...), c.want)
		require.Equal(t, uint64(1), r.now.Load().primary.ID, "the ring is as before")
	}
	require.NoError(t, r.Replace(Key{ID: 2, Secret: octets(0, 16), NotBefore: at, NotAfter: at}))
	require.Zero(t, r.now.Load().primaryID())
}

// TestCM_36_UnknownKeyCostsAsMuchAsTheDearestOne: whatever the order of the keys in the ring.
func TestCM_36_UnknownKeyCostsAsMuchAsTheDearestOne(t *testing.T) {
	shared, master := Key{ID: 1, Secret: octets(0, 16)}, Key{ID: 2, Secret: octets(1, 16), Derive: true}
	for _, c := range []struct {
		derive bool
		keys   []Key
	}{{false, []Key{shared}}, {true, []Key{master}}, {true, []Key{shared, master}}, {true, []Key{master, shared}}} {
		r, err := NewRing(c.keys...)
		require.NoError(t, err)
		require.Equal(t, c.derive, r.now.Load().dummy.Derive)
	}
}

func TestRingCopiesSecrets(t *testing.T) {
	secret := octets(1, 32)
	r, err := NewRing(Key{ID: 1, Secret: secret})
	require.NoError(t, err)
	clear(secret)
	require.Equal(t, octets(1, 32), r.now.Load().entries[1].Secret)
}

func TestInitiateWithoutAPrimaryKey(t *testing.T) {
	r, err := NewRing(Key{ID: 1, Secret: octets(1, 32)})
	require.NoError(t, err)
	a, err := New(&Config{Ring: r})
	require.NoError(t, err)
	_, err = a.Initiate(t.Context(), &iwarp.AuthInfo{})
	require.ErrorContains(t, err, "no primary key")
}

// TestCM_13_DatesOfKeys sets the server's clock to both sides of each date.
func TestCM_13_DatesOfKeys(t *testing.T) {
	s := siteOf(t, nil)
	from := s.clock.Now()
	to := from.Add(time.Hour)
	key := Key{ID: 7, Secret: testMaster, Derive: true, NotBefore: from, NotAfter: to}
	require.NoError(t, s.server.cfg.Ring.Replace(key))
	for _, c := range []struct {
		at   time.Time
		want Reason
	}{
		{from.Add(-1), ReasonKeyEarly},
		{from, 0},
		{to, 0},
		{to.Add(1), ReasonKeyRetired},
		{to.Add(24 * time.Hour), ReasonKeyRetired},
		{to.Add(24*time.Hour + 1), ReasonUnknownKey},
	} {
		s.clock.now = c.at
		if c.want == 0 {
			s.connect()
			continue
		}
		s.refused(s.request(s.initiate()), c.want)
	}
	// The keys that were derived while the ID was known are still in the cache.
	require.Equal(t, 1, s.server.cfg.Ring.now.Load().cached.Len())
}

// TestDatesOfKeysAreTimesOfDay: even if they come from time.Now. A key must not stay valid longer because the machine sleeps.
func TestDatesOfKeysAreTimesOfDay(t *testing.T) {
	now := time.Now()
	require.Contains(t, now.String(), " m=", "with the monotonic clock")
	r, err := NewRing(Key{ID: 7, Secret: testMaster, NotBefore: now, NotAfter: now})
	require.NoError(t, err)
	e := r.now.Load().entries[7]
	require.True(t, now.Equal(e.NotBefore))
	require.True(t, now.Equal(e.NotAfter))
	require.NotContains(t, e.NotBefore.String()+e.NotAfter.String(), " m=")
}

func TestCM_13_SeveralKeysAreAccepted(t *testing.T) {
	s := siteOf(t, nil)
	a := Key{ID: 1, Secret: octets(1, 16), Group: "a"}
	b := Key{ID: 2, Secret: octets(2, 16), Group: "b", Primary: true}
	require.NoError(t, s.server.cfg.Ring.Replace(a, b))
	for _, k := range []Key{a, b} {
		k.Primary = true
		require.NoError(t, s.client.cfg.Ring.Replace(k, Key{ID: 9, Secret: octets(9, 16)}))
		i, r := s.connect()
		require.Equal(t, k.ID, r.Peer().KeyID)
		require.Equal(t, k.Group, r.Peer().Group)
		require.Equal(t, k.Group, i.Peer().Group)
	}
}

// TestCM_13_14_SetUpKeepsItsRing replaces the rings of both sides at each step of a set-up.
func TestCM_13_14_SetUpKeepsItsRing(t *testing.T) {
	eachKind(t, func(t *testing.T, change func(client, server *Config)) {
		s := siteOf(t, change)
		replace := func(id uint64) {
			k := Key{ID: id, Secret: octets(byte(id), 16), Primary: true}
			require.NoError(t, s.client.cfg.Ring.Replace(k))
			require.NoError(t, s.server.cfg.Ring.Replace(k))
		}
		i, r := s.initiate(), s.respond()
		replace(1)
		request := s.request(i)
		replace(2)
		_, err := r.Open(request, frameOff)
		require.NoError(t, err)
		replace(3)
		reply := s.reply(r)
		replace(4)
		_, err = i.Open(reply, frameOff)
		require.NoError(t, err)
		replace(5)
		s.confirm(i, r)
		require.Equal(t, uint64(7), r.Peer().KeyID)
		_, r = s.connect()
		require.Equal(t, uint64(5), r.Peer().KeyID)
	})
}

// TestCM_14_RotationUnderLoad rotates keys with an overlap while several clients connect.
func TestCM_14_RotationUnderLoad(t *testing.T) {
	s := siteOf(t, nil)
	key := func(id uint64, primary bool) Key {
		return Key{ID: id, Secret: octets(byte(id), 16), Primary: primary}
	}
	require.NoError(t, s.server.cfg.Ring.Replace(key(0, false), key(1, true)))
	require.NoError(t, s.client.cfg.Ring.Replace(key(1, true)))
	var turns sync.RWMutex // each set-up happens within one overlap
	rotated := 0
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for range 200 {
				turns.RLock()
				i, r := s.connect()
				turns.RUnlock()
				i.Close()
				r.Close()
			}
		})
	}
	for id := uint64(1); id < 50; id++ {
		require.NoError(t, s.server.cfg.Ring.Replace(key(id, false), key(id+1, true)))
		require.NoError(t, s.client.cfg.Ring.Replace(key(id+1, true)))
		turns.Lock() // no set-up is left that began before
		rotated++
		turns.Unlock()
	}
	clients.Wait()
	require.Equal(t, 49, rotated)
	require.Empty(t, s.server.Stats().Refused)
}

func TestKeysAreCachedWithinABound(t *testing.T) {
	s := siteOf(t, func(_, server *Config) { generous(server) })
	ring := s.server.cfg.Ring.now.Load()
	u := use(ModeB, SuiteHMAC)
	e := ring.lookup(7, s.clock.Now(), 0)
	first := ring.keys(e, u)
	require.Same(t, first, ring.keys(e, u))
	for n := range cachedKeys + 10 {
		other := u
		other.clientID[0], other.clientID[1] = byte(n), byte(n>>8)
		ring.keys(ring.dummy, other)
	}
	require.Equal(t, cachedKeys, ring.cached.Len())
	require.NotSame(t, first, ring.keys(e, u))
	require.Equal(t, first.request.key, ring.keys(e, u).request.key)
}
