package cm

import (
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/bucket"
	"github.com/goiwarp/iwarp/internal/lru"
)

// closedAt is the number of bursts of failures, beyond the first, that lead to a block without replies.
const closedAt = 10

// A source is where connections come from: an IPv4 address, the upper 64 bits of an IPv6 address,
// or the text of an address of another kind.
type source struct {
	prefix netip.Prefix
	name   string
}

// sourceOf finds the source of an address.
func sourceOf(a net.Addr) source {
	if a == nil {
		return source{}
	}
	ip, ok := addrOf(a)
	if !ok {
		return source{name: a.Network() + " " + a.String()}
	}
	ip = ip.Unmap().WithZone("")
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.Prefix(bits) // the bits are right
	return source{prefix: p}
}

// addrOf returns the IP address. In the text of SCTP addresses, more addresses follow after a slash.
func addrOf(a net.Addr) (netip.Addr, bool) {
	if at, ok := a.(interface{ AddrPort() netip.AddrPort }); ok {
		ip := at.AddrPort().Addr()
		return ip, ip.IsValid()
	}
	first, _, _ := strings.Cut(a.String(), "/")
	if at, err := netip.ParseAddrPort(first); err == nil {
		return at.Addr(), true
	}
	ip, err := netip.ParseAddr(strings.Trim(first, "[]"))
	return ip, err == nil
}

func (s source) String() string {
	switch {
	case s.name != "":
		return s.name
	case !s.prefix.IsValid():
		return "unknown"
	case s.prefix.Addr().Is4():
		return s.prefix.Addr().String()
	default:
		return s.prefix.String()
	}
}

// A verdict is how connections of a source are treated.
type verdict int

const (
	verdictOpen    verdict = iota
	verdictBlocked         // refused
	verdictClosed          // closed without a reply
)

// A sourceState is what is known about one source.
type sourceState struct {
	failures    bucket.Bucket
	records     bucket.Bucket // of the log
	closedUntil time.Time
}

// sources remembers the sources of failures, and no others.
type sources struct {
	limits Limits

	mu     sync.Mutex
	known  *lru.Map[source, *sourceState]
	shared *sourceState // of sources for which the table has no space
	hmacs  bucket.Bucket
}

func newSources(l Limits) *sources {
	return &sources{limits: l, known: lru.New[source, *sourceState](l.Sources), shared: new(sourceState)}
}

// verdict returns how connections of the source are treated now.
func (t *sources) verdict(from source, now time.Time) verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, found := t.known.Get(from)
	if !found {
		if t.takesMore(now) {
			return verdictOpen
		}
		s = t.shared
	}
	if now.Before(s.closedUntil) {
		return verdictClosed
	}
	if s.failures.Level(now, t.limits.FailureRate, float64(t.limits.FailureBurst)) < 1 {
		return verdictBlocked
	}
	return verdictOpen
}

// charge takes a token for a failure, even if none is left.
func (t *sources) charge(from source, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, burst := t.state(from, now), float64(t.limits.FailureBurst)
	if s.failures.Charge(now, t.limits.FailureRate, burst) <= -closedAt*burst {
		s.closedUntil = now.Add(t.limits.Block)
		// The tokens of the first burst come after the block.
		s.failures = bucket.Empty(s.closedUntil, burst)
	}
}

// mayLog takes a token for a record of the log.
func (t *sources) mayLog(from source, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.limits.LogPerSource
	return t.state(from, now).records.Take(now, float64(n), float64(n))
}

// mayVerify takes a token for an HMAC.
func (t *sources) mayVerify(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := float64(t.limits.HMACs)
	return t.hmacs.Take(now, n, n)
}

// state returns the state of a source, and adds the source to the table if it is new.
func (t *sources) state(from source, now time.Time) *sourceState {
	s, found := t.known.Get(from)
	if !found {
		if !t.takesMore(now) {
			return t.shared
		}
		s = new(sourceState)
		t.known.Put(from, s)
	}
	return s
}

// takesMore reports whether the table has space for another source, or holds one that can be
// forgotten, because its bucket is full again.
func (t *sources) takesMore(now time.Time) bool {
	if !t.known.Full() {
		return true
	}
	_, s := t.known.Oldest()
	return !now.Before(s.closedUntil) && s.failures.Level(now, t.limits.FailureRate, 1) >= 1
}

// count returns how many sources are known.
func (t *sources) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known.Len()
}
