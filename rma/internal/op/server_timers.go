package op

import "time"

// Tick lets the timers run out that are due. Call it at Deadline. Receive, Opened, Pulled and Copied do
// the same first, so that an event at the end of Ts is too late.
func (s *Server) Tick(dst []Action, now time.Time) []Action {
	t := s.clock.at(now)
	if t < s.clock.next {
		return dst
	}
	s.clock.next = never
	for i := range s.records {
		r := &s.records[i]
		if r.timed() && r.due <= t {
			dst = s.timeout(dst, int32(i))
		}
		if r.timed() {
			s.clock.next = min(s.clock.next, r.due)
		}
	}
	return dst
}

// timeout handles the timer of a record.
func (s *Server) timeout(dst []Action, i int32) []Action {
	r := &s.records[i]
	switch r.state {
	case recordQueued:
		dst = append(dst, s.action(Cancel, i))
		return s.retire(s.status(dst, i, Verdict{NACK, NoWindow}), i)
	case recordPulled:
		s.stats.Expired++
		dst = append(dst, s.action(Hold, i))
		if s.cfg.Linger == 0 {
			return s.revoke(dst, i)
		}
		s.enter(i, recordFenced)
		r.due = s.clock.timer(s.cfg.Linger)
		return dst
	case recordReading:
		s.stats.Expired++
		return s.overrun(append(dst, s.action(Hold, i)), i)
	case recordOpening:
		s.stats.Expired++
		s.enter(i, recordDropping)
		return dst
	case recordCopying:
		s.enter(i, recordFinishing)
		return dst
	case recordFenced:
		return s.revoke(dst, i)
	case recordOverrun:
		r.due = never
		return append(dst, s.action(Revoke, i))
	default:
		return dst
	}
}

// overrun lets the RDMA Read of a source go on for the time Linger. If it takes longer, only the end of the connection can
// end it: Revoked decides that, because a completion may not have been reported yet.
func (s *Server) overrun(dst []Action, i int32) []Action {
	s.enter(i, recordOverrun)
	s.records[i].due = s.clock.timer(s.cfg.Linger)
	return dst
}

// revoke revokes the sink of a write, and releases the grant: see Client.giveUp.
func (s *Server) revoke(dst []Action, i int32) []Action {
	s.enter(i, recordRevoking)
	return s.release(append(dst, s.action(Revoke, i)), i, RefundTimeout)
}

// Close refuses the requests that wait for the window, and all that come from now on. The others
// continue.
func (s *Server) Close(dst []Action, now time.Time) []Action {
	s.clock.at(now)
	if s.phase != phaseOpen {
		return dst
	}
	s.phase = phaseClosing
	for i := range s.records {
		if s.records[i].state == recordQueued {
			dst = append(dst, s.action(Cancel, int32(i)))
			dst = s.retire(s.status(dst, int32(i), Verdict{NACK, Closing}), int32(i))
		}
	}
	return dst
}

// Lost tells the Server that the connection is gone: nothing is placed through an STag any more, all
// messages that came before were passed to Receive, and Pulled was called for each RDMA Read that has
// completed. Other RDMA Reads never will. Revoked, Served, Opened and Copied are still called.
func (s *Server) Lost(dst []Action, now time.Time) []Action {
	s.clock.at(now)
	if s.phase == phaseLost {
		return dst
	}
	s.phase = phaseLost
	for i := range s.records {
		switch s.records[i].state {
		case recordQueued:
			dst = append(dst, s.action(Cancel, int32(i)))
			dst = s.retire(dst, int32(i))
		case recordPulled, recordReading, recordFenced, recordOverrun:
			dst = s.retire(s.release(dst, int32(i), RefundFailed), int32(i))
		case recordOpening:
			s.enter(int32(i), recordDropping)
		default:
		}
	}
	return dst
}
