package cm

import (
	"math"
	"sync"
	"time"
)

// maxStep is how far a wall clock may go back without consequences.
const maxStep = int64(time.Second)

// A freshness decides whether Requests of mode A are fresh: by their time, by whether they came
// before, and by whether that can be known yet. Times are nanoseconds since 1970.
type freshness struct {
	mu   sync.Mutex
	skew int64

	start time.Time // monotonic times count from here
	wall  int64     // the wall clock, which goes back here only by a step
	mono  int64     // the monotonic time at which wall was read

	// The blackout, by the wall clock and by the monotonic clock: a Request may have been accepted that is not in the cache.
	darkUntil int64
	darkFor   int64 // since the start, when the wall clock may not have been right yet
	newest    int64 // the latest time in a Request that was accepted

	cache replayCache
	store CacheStore
}

func newFreshness(now time.Time, skew time.Duration, size int, store CacheStore) *freshness {
	f := &freshness{
		skew: int64(skew), start: now, wall: now.UnixNano(),
		newest: math.MinInt64, darkUntil: math.MinInt64, store: store,
	}
	f.cache = replayCache{most: size, lifetime: 2 * f.skew, since: f.wall}
	if store == nil {
		// Requests that an earlier process accepted have times below start + skew, because the
		// clock of a client may be ahead by skew. They are stale once the blackout is over.
		f.darkFor = 2 * f.skew
		f.darkUntil = f.wall + f.darkFor
	}
	return f
}

// dark reports whether mode A is not available now. The clock is read under the lock: otherwise a reading
// that a later one has overtaken would look like a step back.
func (f *freshness) dark(clock func() time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := clock()
	return f.observe(now.UnixNano(), int64(now.Sub(f.start)))
}

// observe takes a reading of the wall clock and of the monotonic clock, and reports whether the
// blackout lasts. A step back of the wall clock begins another blackout: times repeat in which
// Requests were accepted that the cache has forgotten.
func (f *freshness) observe(wall, mono int64) (dark bool) {
	elapsed := max(mono-f.mono, 0) // without a monotonic clock, mono is the wall clock too
	switch {
	case wall-f.wall < elapsed-maxStep:
		f.wall, f.mono = wall, mono
		f.darkUntil = max(f.darkUntil, wall+2*f.skew, f.newest+f.skew+1)
	case wall > f.wall:
		f.wall, f.mono = wall, mono
	}
	return f.wall < f.darkUntil || mono < f.darkFor
}

// admit accepts a Request once. The clock is read under the lock: no Request can wait between the
// check of its time and the check of the cache until the cache has forgotten it.
func (f *freshness) admit(clock func() time.Time, key CacheKey, at uint64) error {
	now, err := f.check(clock, key, at)
	if err != nil || f.store == nil {
		return err
	}
	// The clocks of servers that share the store may differ by the skew.
	isNew, err := f.store.Insert(key, now.Add(time.Duration(4*f.skew)))
	switch {
	case err != nil:
		return &Error{ReasonStore, err}
	case !isNew:
		return &Error{Reason: ReasonReplay}
	}
	return nil
}

// check is admit without the store.
func (f *freshness) check(clock func() time.Time, key CacheKey, at uint64) (time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := clock()
	if f.observe(now.UnixNano(), int64(now.Sub(f.start))) {
		return now, failure(ReasonStale, "the clock has gone back")
	}
	if at > math.MaxInt64 {
		return now, failure(ReasonStale, "a time after the year 2262")
	}
	t := int64(at)
	if t < f.wall-f.skew || t > f.wall+f.skew {
		return now, &Error{Reason: ReasonStale}
	}
	if f.store == nil {
		if err := f.cache.insert(key, f.wall); err != nil {
			return now, err
		}
	}
	f.newest = max(f.newest, t)
	return now, nil
}

// entries returns how many Requests the cache holds.
func (f *freshness) entries() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.cache.young) + len(f.cache.old)
}
