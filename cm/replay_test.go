package cm

import (
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func modeA(client, server *Config) {
	client.Mode = ModeA
	generous(server)
}

// open passes the server a frame and returns why the server does not accept it; 0: it does.
func (s *site) open(frame []byte) Reason {
	s.t.Helper()
	r := s.respond()
	defer r.Close()
	_, err := r.Open(frame, frameOff)
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	require.NoError(s.t, err)
	return 0
}

func TestCM_26_SkewToTheNanosecond(t *testing.T) {
	const skew = 30 * time.Second
	for _, c := range []struct {
		by   time.Duration // by how much the server's clock is ahead
		want Reason
	}{
		{0, 0},
		{skew, 0},
		{skew + 1, ReasonStale},
		{-skew, 0},
		{-skew - 1, ReasonStale},
		{1000 * time.Hour, ReasonStale},
		{-1000 * time.Hour, ReasonStale},
	} {
		s := siteOf(t, modeA)
		client := s.clock.Now()
		s.client.cfg.Now = func() time.Time { return client }
		s.server.fresh.wall -= int64(2000 * time.Hour) // so that the test may set the clock back
		s.server.fresh.darkUntil, s.server.fresh.darkFor = 0, math.MinInt64
		s.clock.advance(c.by)
		require.Equal(t, c.want, s.open(s.request(s.initiate())), c.by)
	}
	s := siteOf(t, modeA)
	s.client.cfg.Now = func() time.Time { return time.Unix(-1, 0) }
	require.Equal(t, ReasonStale, s.open(s.request(s.initiate())))
}

func TestCM_27_28_ReplaysAreRefusedAsLongAsTheirTimeIsGood(t *testing.T) {
	for _, ahead := range []time.Duration{-30 * time.Second, 0, 30 * time.Second} {
		s := siteOf(t, modeA)
		s.client.cfg.Now = func() time.Time { return s.clock.Now().Add(ahead) }
		frame := s.request(s.initiate())
		require.Zero(t, s.open(frame))
		for range 200 {
			require.Contains(t, []Reason{ReasonReplay, ReasonStale}, s.open(frame))
			s.clock.advance(time.Second)
			s.open(s.request(s.initiate())) // the generations rotate
		}
		require.Equal(t, ReasonStale, s.open(frame))
	}
}

func TestCM_27_AMillionReplays(t *testing.T) {
	clock := newClock()
	f := newFreshness(clock.Now(), time.Hour, 10, nil)
	clock.advance(2 * time.Hour)
	at := uint64(clock.Now().UnixNano())
	var accepted atomic.Int64
	var attackers sync.WaitGroup
	for range 4 {
		attackers.Go(func() {
			for range 250_000 {
				if f.admit(clock.Now, CacheKey{KeyID: 1}, at) == nil {
					accepted.Add(1)
				}
			}
		})
	}
	attackers.Wait()
	require.Equal(t, int64(1), accepted.Load())
}

func TestCM_27_ReplaysAtOnce(t *testing.T) {
	s := siteOf(t, modeA)
	for range 50 {
		frame := s.request(s.initiate())
		var accepted atomic.Int64
		var attackers sync.WaitGroup
		for range 8 {
			attackers.Go(func() {
				if s.open(frame) == 0 {
					accepted.Add(1)
				}
			})
		}
		attackers.Wait()
		require.Equal(t, int64(1), accepted.Load())
	}
}

// TestCM_28_29_LifetimeAndBoundOfEntries runs random sequences against a model that forgets
// nothing.
func TestCM_28_29_LifetimeAndBoundOfEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const lifetime, most = 100, 8
		c := replayCache{most: most, lifetime: lifetime}
		inserted := map[CacheKey]int64{}
		now := int64(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now += rapid.Int64Range(0, 70).Draw(t, "later")
			k := CacheKey{KeyID: rapid.Uint64Range(0, 30).Draw(t, "key")}
			err := c.insert(k, now)
			at, known := inserted[k]
			if known && now-at <= lifetime {
				requireReasonIn(t, err, ReasonReplay)
			}
			if err == nil {
				if known && now-at <= lifetime {
					t.Fatalf("accepted twice, at %d and %d", at, now)
				}
				inserted[k] = now
			}
			if len(c.young) > most || len(c.old) > most {
				t.Fatalf("%d and %d entries", len(c.young), len(c.old))
			}
		}
	})
}

func requireReasonIn(t *rapid.T, err error, want Reason) {
	if !isReason(err, want) {
		t.Fatalf("%v in place of %v", err, want)
	}
}

func TestCM_28_EntriesLiveToTheEndOfTheirTime(t *testing.T) {
	c := replayCache{most: 10, lifetime: 100}
	require.NoError(t, c.insert(CacheKey{KeyID: 1}, 99)) // just before the young generation becomes the old one
	require.NoError(t, c.insert(CacheKey{KeyID: 2}, 100))
	require.True(t, isReason(c.insert(CacheKey{KeyID: 1}, 199), ReasonReplay))
	require.NoError(t, c.insert(CacheKey{KeyID: 1}, 200))
	require.NoError(t, c.insert(CacheKey{KeyID: 2}, 1000)) // both generations are forgotten
	require.Empty(t, c.old)
}

// TestCM_28_EntriesAfterAStepBack: they live no longer than two lifetimes. Otherwise a full cache would refuse everything until
// the clock shows the old time again.
func TestCM_28_EntriesAfterAStepBack(t *testing.T) {
	c := replayCache{most: 1, lifetime: 100}
	require.NoError(t, c.insert(CacheKey{KeyID: 1}, 1000))
	require.True(t, isReason(c.insert(CacheKey{KeyID: 2}, 10), ReasonCacheFull))
	require.True(t, isReason(c.insert(CacheKey{KeyID: 1}, 109), ReasonReplay))
	require.NoError(t, c.insert(CacheKey{KeyID: 2}, 110))
	require.True(t, isReason(c.insert(CacheKey{KeyID: 1}, 209), ReasonReplay))
	require.NoError(t, c.insert(CacheKey{KeyID: 1}, 210))
}

func TestCM_29_FullCacheRefuses(t *testing.T) {
	s := siteOf(t, func(client, server *Config) { modeA(client, server); server.CacheSize = 5 })
	first := s.request(s.initiate())
	require.Zero(t, s.open(first))
	for range 4 {
		require.Zero(t, s.open(s.request(s.initiate())))
	}
	for range 10 {
		require.Equal(t, ReasonCacheFull, s.open(s.request(s.initiate())))
		require.Equal(t, ReasonReplay, s.open(first), "nothing is forgotten early")
		require.Equal(t, 5, s.server.Stats().Cached)
	}
	require.Equal(t, uint64(10), s.server.Stats().Refused[ReasonCacheFull])

	s.client.cfg.Mode = ModeB // other clients can use mode B
	require.Zero(t, s.open(s.request(s.initiate())))

	s.client.cfg.Mode = ModeA
	s.clock.advance(2 * s.server.cfg.Skew)
	for range 5 {
		require.Zero(t, s.open(s.request(s.initiate())))
	}
	require.Equal(t, ReasonCacheFull, s.open(s.request(s.initiate())))
	require.Equal(t, 10, s.server.Stats().Cached)
}

func TestCM_30_OnlyVerifiedRequestsEnterTheCache(t *testing.T) {
	s := siteOf(t, modeA)
	frame := s.request(s.initiate())
	bad := append([]byte(nil), frame...)
	bad[len(bad)-1] ^= 1
	require.Equal(t, ReasonBadMAC, s.open(bad))
	client := s.clock.Now()
	s.client.cfg.Now = func() time.Time { return client.Add(-time.Hour) }
	require.Equal(t, ReasonStale, s.open(s.request(s.initiate())))
	_ = s.server.cfg.Ring.Replace(Key{ID: 7, Secret: testMaster, Derive: true, NotAfter: client.Add(-time.Hour)})
	require.Equal(t, ReasonKeyRetired, s.open(frame))
	require.Zero(t, s.server.Stats().Cached)
	_ = s.server.cfg.Ring.Replace(Key{ID: 7, Secret: testMaster, Derive: true})
	require.Zero(t, s.open(frame), "the nonce is not spent")
	require.Equal(t, 1, s.server.Stats().Cached)
}

// TestCM_31_Restart restarts the server again and again after it has accepted a Request.
func TestCM_31_Restart(t *testing.T) {
	for _, ahead := range []time.Duration{-30 * time.Second, 0, 30 * time.Second} {
		s := siteOf(t, modeA)
		s.client.cfg.Now = func() time.Time { return s.clock.Now().Add(ahead) }
		frame := s.request(s.initiate())
		require.Zero(t, s.open(frame))
		s.clock.advance(1)
		for range 5 {
			restarted, err := New(&s.server.cfg)
			require.NoError(t, err)
			s.server = restarted
			for range 60 {
				require.Equal(t, ReasonBlackout, s.open(s.request(s.initiate())))
				require.Equal(t, ReasonBlackout, s.open(frame))
				s.clock.advance(time.Second)
			}
			require.Equal(t, ReasonStale, s.open(frame))
			require.Zero(t, s.open(s.request(s.initiate())), "2 x Skew after the start")
		}
	}
}

func TestCM_31_BlackoutToTheNanosecond(t *testing.T) {
	clock := newClock()
	f := newFreshness(clock.Now(), 30*time.Second, 10, nil)
	clock.advance(60*time.Second - 1)
	require.True(t, f.dark(clock.Now))
	clock.advance(1)
	require.False(t, f.dark(clock.Now))
}

// TestCM_31_ClockThatGoesBack gives readings of the wall clock and of the monotonic one.
func TestCM_31_ClockThatGoesBack(t *testing.T) {
	const s = int64(time.Second)
	fresh := func() *freshness {
		f := newFreshness(time.Unix(0, 0), 30*time.Second, 10, nil)
		require.False(t, f.observe(100*s, 100*s))
		return f
	}
	f := fresh()
	require.False(t, f.observe(99*s, 100*s), "one second, which is held")
	require.Equal(t, 100*s, f.wall)
	require.False(t, f.observe(150*s, 150*s))
	require.True(t, f.observe(150*s, 152*s), "the wall clock has stood still for two seconds")
	require.True(t, f.observe(210*s-1, 212*s-1))
	require.False(t, f.observe(210*s, 212*s))

	f = fresh()
	require.True(t, f.observe(99*s-1, 100*s), "more than one second")
	require.True(t, f.observe(159*s-2, 160*s))
	require.False(t, f.observe(159*s, 160*s))

	f = fresh()
	require.True(t, f.observe(50*s, 50*s), "there is no monotonic clock")
	f = fresh()
	require.False(t, f.observe(1000*s, 100*s), "a step forward")
}

// TestCM_31_ClockThatWasSlowAtTheStart: once it is set right, it shows times again in which an earlier process has accepted
// Requests.
func TestCM_31_ClockThatWasSlowAtTheStart(t *testing.T) {
	const s = int64(time.Second)
	f := newFreshness(time.Unix(0, 0), 30*time.Second, 10, nil)
	require.True(t, f.observe(5*s, 5*s))
	require.True(t, f.observe(1000*s, 10*s), "the Request of the moment before the start is fresh")
	require.True(t, f.observe(1050*s-1, 60*s-1))
	require.False(t, f.observe(1050*s, 60*s))
}

func TestCM_31_ClockStepsBackToTheTimeOfARequest(t *testing.T) {
	s := siteOf(t, modeA)
	frame := s.request(s.initiate())
	require.Zero(t, s.open(frame))
	s.clock.advance(-time.Hour)
	for range 61 {
		require.Equal(t, ReasonBlackout, s.open(frame))
		s.clock.advance(time.Minute)
	}
	require.Equal(t, ReasonStale, s.open(frame))
	require.Zero(t, s.open(s.request(s.initiate())))
}

// TestCM_31_ClockStepsBackWhileARequestIsVerified: the time is checked again.
func TestCM_31_ClockStepsBackWhileARequestIsVerified(t *testing.T) {
	clock := newClock()
	f := newFreshness(clock.Now(), 30*time.Second, 10, nil)
	clock.advance(time.Minute)
	require.False(t, f.dark(clock.Now))
	clock.advance(-2 * time.Second)
	err := f.admit(clock.Now, CacheKey{}, uint64(clock.Now().UnixNano()))
	requireReason(t, ReasonStale, err)
}

// TestCM_31_RequestsThatOvertakeOneAnother: a Request whose verification waits for a processor while others
// overtake it is not mistaken for a step back of the clock.
func TestCM_31_RequestsThatOvertakeOneAnother(t *testing.T) {
	s := siteOf(t, modeA)
	slow, fast, later := s.respond(), s.respond(), s.respond()
	first, read, goes := s.request(s.initiate()), make(chan struct{}), make(chan struct{})
	var held atomic.Bool
	s.server.cfg.Now = func() time.Time {
		now := s.clock.Now()
		if !held.Swap(true) {
			close(read)
			<-goes
		}
		return now
	}
	ended := make(chan error, 1)
	go func() {
		_, err := slow.Open(first, frameOff)
		ended <- err
	}()
	<-read
	s.clock.advance(2 * time.Second)
	_, err := fast.Open(s.request(s.initiate()), frameOff)
	require.NoError(t, err)
	close(goes)
	require.NoError(t, <-ended)
	_, err = later.Open(s.request(s.initiate()), frameOff)
	require.NoError(t, err)
	for _, r := range []*responder{slow, fast, later} {
		r.Close()
	}
}

// A mapStore is a CacheStore that two servers share.
type mapStore struct {
	seen  map[CacheKey]time.Time
	fails error
}

func (m *mapStore) Insert(k CacheKey, until time.Time) (bool, error) {
	if m.fails != nil {
		return false, m.fails
	}
	_, found := m.seen[k]
	m.seen[k] = until
	return !found, nil
}

func TestCM_27_31_Store(t *testing.T) {
	store := &mapStore{seen: make(map[CacheKey]time.Time)}
	s := siteOf(t, func(client, server *Config) { modeA(client, server); server.Store = store })
	s.clock.now = newClock().now // there is no blackout
	frame := s.request(s.initiate())
	require.Zero(t, s.open(frame))
	var nonce [16]byte
	copy(nonce[:], frame[frameOff+40:])
	require.Equal(t, map[CacheKey]time.Time{{binary.BigEndian.Uint64(frame[frameOff+8:]), nonce}: s.clock.Now().Add(2 * time.Minute)}, store.seen)
	require.Equal(t, ReasonReplay, s.open(frame))

	other, err := New(&s.server.cfg)
	require.NoError(t, err)
	s.server = other
	require.Equal(t, ReasonReplay, s.open(frame))

	store.fails = errors.New("no disk")
	require.Equal(t, ReasonStore, s.open(s.request(s.initiate())))
	require.Zero(t, s.server.Stats().Cached)
}
