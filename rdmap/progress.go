package rdmap

// Progress tells how far the oldest request that was posted and is not complete has come. It changes
// when that request completes, and when octets of it are sent or octets of its response arrive.
type Progress struct {
	request uint64 // its number
	sent    bool   // all of it
	batches uint64 // sent so far, for a request that is being sent
	octets  uint64 // of Read Responses so far, for one that has been sent
}

// Progress returns false if all requests are complete. Octets are counted in batches: those that this
// side sends when the LLP has accepted the whole batch, those that arrive in [Stream.BatchDone]. It may
// be called at any time and from any goroutine.
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
