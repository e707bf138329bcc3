package cm

import "sync/atomic"

// Stats are the counters of an Auth.
type Stats struct {
	Accepted   uint64            // connections of clients that have become ready
	Plain      uint64            // accepted connections without authentication
	Connected  uint64            // connections to servers that were verified
	Refused    map[Reason]uint64 // refused connections of clients
	HMACs      uint64            // HMACs computed over received Requests
	Suppressed uint64            // refusals without a record in the log
	HalfOpen   int               // set-ups in progress
	Cached     int               // Requests of mode A in the cache
	Sources    int               // sources that are tracked
}

type counters struct {
	accepted, plain, connected, hmacs atomic.Uint64
	refused                           [reasons]atomic.Uint64
}

// Stats returns the current counters.
func (a *Auth) Stats() Stats {
	s := Stats{
		Accepted: a.counts.accepted.Load(), Plain: a.counts.plain.Load(), Connected: a.counts.connected.Load(),
		Refused: make(map[Reason]uint64), HMACs: a.counts.hmacs.Load(), Suppressed: a.log.lost(),
		HalfOpen: a.open.count(), Cached: a.fresh.entries(), Sources: a.sources.count(),
	}
	for r := range a.counts.refused {
		if n := a.counts.refused[r].Load(); n > 0 {
			s.Refused[Reason(r)] = n
		}
	}
	return s
}
