package solicit

import "time"

// Stats counts what a Window has done. Octets are those that count: MinCharge at least for each
// operation.
type Stats struct {
	Limit      int64 // octets: the size of the window now
	Granted    int64 // octets that are granted now, Held among them
	MaxGranted int64 // the most octets that ever were
	Held       int64 // octets of operations that timed out, and may still come
	Queued     int   // operations that wait now, with those that Expire has not reported

	Grants       [2]uint64 // operations that were granted, for each Class
	Octets       [2]uint64 // and their octets
	Expired      uint64    // operations that waited too long
	Cancelled    uint64    // operations that were cancelled while they waited
	Nacked       uint64    // operations that were granted and ended so
	TimedOut     uint64
	Failed       uint64
	TooLarge     uint64 // operations that Enqueue refused
	QueueFull    uint64
	Unidentified uint64 // calls of Release and Hold for what is not granted, or held already

	MinRTT time.Duration // the delay of the path, 0 while it is not known or the size is fixed
}

// Stats returns the counters as they are now.
func (w *Window) Stats() Stats {
	s := w.stats
	s.Limit = w.limit()
	s.Granted = w.granted
	s.Queued = w.queued[Latency] + w.queued[Bulk]
	s.MinRTT = w.sizing.base.rtt
	return s
}

// PacerStats is what a Pacer knows now.
type PacerStats struct {
	Cwnd   float64       // operations that may be in flight; less than 1: one, with pauses
	MinRTT time.Duration // the remote delay of the empty path, 0 while it is not known
	Remote time.Duration // the remote delay, smoothed
	Issue  time.Duration // the delay before the grant, smoothed
	Depth  int           // as Pacer.Depth
}

// Stats returns what the Pacer knows now.
func (p *Pacer) Stats() PacerStats {
	s := PacerStats{Cwnd: p.cwnd, MinRTT: p.base.rtt, Remote: p.delay, Issue: p.local.delay, Depth: p.Depth()}
	if !p.began {
		s.Cwnd = startCwnd
	}
	return s
}
