package solicit

import "time"

// Stats are the counters of a Window. Octets are charged octets: at least MinCharge for each
// operation.
type Stats struct {
	Limit      int64 // octets: the current size of the window
	Granted    int64 // octets granted now, including Held
	MaxGranted int64 // the greatest value of Granted so far
	Held       int64 // octets of operations that timed out, which may still arrive
	Queued     int   // operations that wait now, including those that Expire has not reported

	Grants       [2]uint64 // granted operations, for each Class
	Octets       [2]uint64 // octets of granted operations, for each Class
	Expired      uint64    // operations that waited too long
	Cancelled    uint64    // operations that were cancelled while they waited
	Nacked       uint64    // granted operations that ended with this outcome
	TimedOut     uint64
	Failed       uint64
	TooLarge     uint64 // operations that Enqueue refused
	QueueFull    uint64
	Unidentified uint64 // calls of Release and Hold for operations that are not granted, and of Hold for held ones

	MinRTT time.Duration // the delay of the path; 0: unknown, or the size is fixed
}

// Stats returns the current counters.
func (w *Window) Stats() Stats {
	s := w.stats
	s.Limit = w.limit()
	s.Granted = w.granted
	s.Queued = w.queued[Latency] + w.queued[Bulk]
	s.MinRTT = w.sizing.base.rtt
	return s
}

// PacerStats is the state of a Pacer.
type PacerStats struct {
	Cwnd   float64       // operations that may be in flight; less than 1: one, with pauses
	MinRTT time.Duration // the remote delay of the empty path; 0: unknown
	Remote time.Duration // the remote delay, smoothed
	Issue  time.Duration // the delay before the grant, smoothed
	Depth  int           // see Pacer.Depth
}

// Stats returns the current state of the Pacer.
func (p *Pacer) Stats() PacerStats {
	s := PacerStats{Cwnd: p.cwnd, MinRTT: p.base.rtt, Remote: p.delay, Issue: p.local.delay, Depth: p.Depth()}
	if !p.began {
		s.Cwnd = startCwnd
	}
	return s
}
