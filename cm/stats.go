package cm

import "sync/atomic"

// Stats counts what an Auth has done.
type Stats struct {
	Accepted   uint64            // connections of clients that have become ready
	Plain      uint64            // of them without authentication
	Connected  uint64            // connections to servers that were verified
	Refused    map[Reason]uint64 // connections of clients
	HMACs      uint64            // computed over Requests that came
	Suppressed uint64            // refusals without a record in the log
	HalfOpen   int               // set-ups under way now
	Cached     int               // Requests of mode A that are remembered now
	Sources    int               // sources that are remembered now
}

type counters struct {
	accepted, plain, connected, hmacs atomic.Uint64
	refused                           [reasons]atomic.Uint64
}

// Stats returns the counters as they are now.
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
