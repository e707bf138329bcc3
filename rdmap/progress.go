package rdmap

// Progress is the progress of the oldest incomplete request. It changes when that request completes,
// and when octets of it are sent or octets of its response arrive.
type Progress struct {
	request uint64 // the number of the request
	sent    bool   // whether all of it was sent
	batches uint64 // sent so far, while the request is being sent
	octets  uint64 // of Read Responses so far, after the request was sent
}

// Progress returns the progress, and false if all requests are complete. Octets are counted in batches:
// octets of this side when the LLP has accepted the whole batch, octets of the peer in
// [Stream.BatchDone]. It may be called at any time and from any goroutine.
func (s *Stream) Progress() (p Progress, busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.request = s.sq.head
	if p.sent = s.sq.head < s.sq.flush; p.sent {
		p.octets = s.stats.in[OpReadResponse].load().Octets
	} else {
		p.batches = s.batches
	}
	return p, s.sq.head < s.sq.posted
}
