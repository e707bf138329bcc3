package op

import "time"

// Granted tells the Server that the window has granted an Enqueue, and that there is memory for the
// sink.
func (s *Server) Granted(dst []Action, now time.Time, id ID) []Action {
	s.clock.at(now)
	i, ok := s.find(id)
	if !ok || s.records[i].state != recordQueued {
		return append(dst, Action{Do: Release, Op: id, Record: NoRecord, Kind: Write, Refund: RefundFailed})
	}
	to := recordPulled
	if s.records[i].source {
		to = recordReading
	}
	s.enter(i, to)
	s.records[i].due = s.clock.timer(s.cfg.PullTimeout)
	return append(dst, s.action(SendPull, i))
}

// Expired tells the Server that the operation has waited too long for the window.
func (s *Server) Expired(dst []Action, now time.Time, id ID) []Action {
	return s.unqueue(dst, now, id, NoWindow)
}

// Refused tells the Server that the window does not accept the operation, or that there is no memory
// for its sink. If it was granted, the caller has already returned the grant.
func (s *Server) Refused(dst []Action, now time.Time, id ID) []Action {
	return s.unqueue(dst, now, id, QueueFull)
}

func (s *Server) unqueue(dst []Action, now time.Time, id ID, why Reason) []Action {
	s.clock.at(now)
	i, ok := s.find(id)
	if !ok || s.records[i].state != recordQueued {
		return dst
	}
	return s.retire(s.status(dst, i, Verdict{NACK, why}), i)
}

// Served reports the result of a Serve. The Verdict is OK if there is an answer.
func (s *Server) Served(dst []Action, now time.Time, id ID, v Verdict) []Action {
	s.clock.at(now)
	i, ok := s.find(id)
	if !ok || s.records[i].state != recordServing {
		return dst
	}
	r := &s.records[i]
	if v.Outcome == RemoteAuth {
		dst = s.failed(dst, s.action(Audit, i), false)
	}
	switch {
	case v.Outcome != OK:
		dst = s.status(dst, i, v)
	case r.kind == Read && s.clock.now >= r.limit:
		dst = s.status(dst, i, Verdict{NACK, TooLate})
	default:
		dst = s.answer(dst, i)
	}
	return s.endIfTooMany(s.retire(dst, i), id)
}

// Pulled reports whether the RDMA Read of a source has succeeded.
func (s *Server) Pulled(dst []Action, now time.Time, id ID, good bool) []Action {
	dst = s.Tick(dst, now)
	i, ok := s.find(id)
	if !ok {
		return dst
	}
	switch s.records[i].state {
	case recordReading:
		if good {
			return s.copy(dst, i)
		}
		return s.retire(s.release(dst, i, RefundFailed), i)
	case recordOverrun:
		s.stats.Late++
		return s.retire(s.release(dst, i, RefundTimeout), i)
	default:
		return dst
	}
}

// Opened reports whether the blob of a write was good.
func (s *Server) Opened(dst []Action, now time.Time, id ID, good bool) []Action {
	dst = s.Tick(dst, now)
	i, ok := s.find(id)
	if !ok {
		return dst
	}
	switch s.records[i].state {
	case recordOpening:
		if good {
			return s.copy(dst, i)
		}
		dst = s.failed(dst, s.action(Audit, i), false)
		dst = s.status(s.release(dst, i, RefundFailed), i, Verdict{RemoteAuth, BadData})
		return s.endIfTooMany(s.retire(dst, i), id)
	case recordDropping:
		s.stats.Late++
		return s.retire(s.release(dst, i, RefundTimeout), i)
	default:
		return dst
	}
}

// copy lets the caller copy the octets of a write into the region, if it begins before Ts.
func (s *Server) copy(dst []Action, i int32) []Action {
	s.enter(i, recordCopying)
	a := s.action(Copy, i)
	a.Before = s.clock.start.Add(s.records[i].due)
	return append(dst, a)
}

// A CopyResult is the result of a Copy.
type CopyResult uint8

// The results.
const (
	CopyDone    CopyResult = iota
	CopyLate               // the clock showed Before or more: the region is untouched
	CopyFailed             // the Buffer of the region has failed
	CopyClosing            // the region was closed: it is untouched
)

// Copied reports the result of a Copy. now is the time after it.
func (s *Server) Copied(dst []Action, now time.Time, id ID, how CopyResult) []Action {
	dst = s.Tick(dst, now)
	i, ok := s.find(id)
	if !ok || s.records[i].state != recordCopying && s.records[i].state != recordFinishing {
		return dst
	}
	if how == CopyLate {
		s.stats.Expired++
		s.stats.Late++
		return s.retire(s.release(dst, i, RefundTimeout), i)
	}
	if how != CopyClosing && s.clock.now >= s.records[i].due+s.cfg.Guard {
		s.stats.LateCommits++
		a := s.action(Audit, i)
		a.Why = LateCommit
		dst = append(dst, a)
	}
	dst = s.release(dst, i, RefundOK)
	switch how {
	case CopyFailed:
		dst = s.status(dst, i, Verdict{Outcome: RemoteError})
	case CopyClosing:
		dst = s.status(dst, i, Verdict{NACK, Closing})
	default:
		dst = s.answer(dst, i)
	}
	return s.retire(dst, i)
}

// Revoked tells the Server that a Revoke is done, and that Pulled was called if the RDMA Read has completed.
func (s *Server) Revoked(dst []Action, now time.Time, id ID) []Action {
	s.clock.at(now)
	i, ok := s.find(id)
	switch {
	case !ok:
		return dst
	case s.records[i].state == recordRevoking:
		return s.retire(dst, i)
	case s.records[i].state == recordOverrun:
		return s.end(dst, id, NotRead)
	default:
		return dst
	}
}
