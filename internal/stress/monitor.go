package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"
)

// A monitor measures every call that its users make, and reports a call that takes too
// long while it is still running.
type monitor struct {
	limit time.Duration
	found chan string // capacity 1: the first call that took too long
	over  chan struct{}
	ended chan struct{}

	mu        sync.Mutex
	users     map[*user]struct{}
	calls     int
	cancelled int           // calls that returned because their context had ended
	longest   time.Duration // wait of a call whose context had not ended
	what      string        // that was
	late      time.Duration // longest time from the end of a context to the return of the call
	waits     [buckets]int  // calls by how long they took; see bucket
}

// A user is a goroutine, which makes one call after the other.
type user struct {
	m    *monitor
	name string

	// Guarded by m.mu.
	what  string // the call under way, empty if there is none
	ctx   context.Context
	began time.Time
	ended time.Time // when the monitor saw that ctx had ended
	may   bool      // the call may take any time while ctx has not ended
}

// lookEvery is how often the monitor checks the running calls.
const lookEvery = 20 * time.Millisecond

func newMonitor(limit time.Duration) *monitor {
	m := &monitor{
		limit: limit, found: make(chan string, 1), over: make(chan struct{}), ended: make(chan struct{}),
		users: make(map[*user]struct{}),
	}
	go m.watch()
	return m
}

func (m *monitor) stop() {
	close(m.over)
	<-m.ended
}

func (m *monitor) watch() {
	defer close(m.ended)
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			m.look(time.Now())
		case <-m.over:
			return
		}
	}
}

// look checks every running call.
func (m *monitor) look(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for u := range m.users {
		if u.what == "" {
			continue
		}
		if u.ctx.Err() != nil && u.ended.IsZero() {
			u.ended = now
		}
		if u.account(now) > m.limit {
			select {
			case m.found <- u.tell(now):
			default:
			}
		}
	}
}

// account records how long the call of u has waited by now. m.mu is held.
func (u *user) account(now time.Time) time.Duration {
	m := u.m
	if !u.ended.IsZero() {
		late := now.Sub(u.ended)
		m.late = max(m.late, late)
		return late
	}
	if u.may {
		return 0
	}
	wait := now.Sub(u.began)
	if wait > m.longest {
		m.longest, m.what = wait, u.name+": "+u.what
	}
	return wait
}

func (u *user) tell(now time.Time) string {
	if u.ended.IsZero() {
		return fmt.Sprintf("%s: %s waits for %v", u.name, u.what, now.Sub(u.began))
	}
	return fmt.Sprintf("%s: %s has not returned %v after the end of its context", u.name, u.what, now.Sub(u.ended))
}

// user adds a goroutine. Its calls may be made one at a time.
func (m *monitor) user(name string) *user {
	u := &user{m: m, name: name}
	m.mu.Lock()
	m.users[u] = struct{}{}
	m.mu.Unlock()
	return u
}

// leave removes the goroutine.
func (u *user) leave() {
	u.m.mu.Lock()
	delete(u.m.users, u)
	u.m.mu.Unlock()
}

// call makes a call under ctx and measures it. With may, the call may take any time until
// ctx ends.
func (u *user) call(ctx context.Context, what string, may bool, f func() error) error {
	m := u.m
	m.mu.Lock()
	u.what, u.ctx, u.began, u.ended, u.may = what, ctx, time.Now(), time.Time{}, may
	m.mu.Unlock()
	err := f()
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.calls++
	if err != nil && ctx.Err() != nil {
		m.cancelled++
	} else {
		u.account(now)
		if !may {
			m.waits[bucket(now.Sub(u.began))]++
		}
	}
	u.what = ""
	return err
}

// The buckets are logarithmic, eight to a doubling, from 1 microsecond on.
const (
	buckets  = 256
	perOctet = 8
)

func bucket(d time.Duration) int {
	us := float64(d) / float64(time.Microsecond)
	return max(0, min(buckets-1, int(math.Log2(max(us, 1))*perOctet)))
}

// below returns the wait that the calls of bucket i did not reach.
func below(i int) time.Duration {
	return time.Duration(math.Exp2(float64(i+1)/perOctet) * float64(time.Microsecond))
}

// quantile returns the wait that the share q of the calls did not exceed. m.mu must be held.
func (m *monitor) quantile(q float64) time.Duration {
	sum := 0
	for _, n := range m.waits {
		sum += n
	}
	left := int(math.Ceil(q * float64(sum)))
	for i, n := range m.waits {
		if left -= n; left <= 0 {
			return below(i)
		}
	}
	return below(buckets - 1)
}

// numbers returns the report of the whole run.
func (m *monitor) numbers() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	us := time.Microsecond
	return fmt.Sprintf("%d calls, %d of them ended with their context; waits: p50 %v, p99 %v, p99.9 %v, longest %v (%s); at most %v from the end of a context to the return",
		m.calls, m.cancelled, m.quantile(0.5).Round(us), m.quantile(0.99).Round(us), m.quantile(0.999).Round(us), m.longest.Round(us), m.what, m.late.Round(us))
}

// A finding is why a run has failed, and what the process looked like then.
type finding struct {
	what       string
	pairs      string
	goroutines []byte
}

func (f *finding) Error() string { return f.what }

// newFinding records the state of the process.
func newFinding(what string, pairs []*pair) *finding {
	f := &finding{what: what, goroutines: make([]byte, 4<<20)}
	for _, p := range pairs {
		f.pairs += p.String()
	}
	f.goroutines = f.goroutines[:runtime.Stack(f.goroutines, true)]
	return f
}
