package op

import "time"

// Receive handles a message whose Role is ServerRole.
func (s *Server) Receive(dst []Action, now time.Time, m *Message) []Action {
	dst = s.Tick(dst, now)
	if s.phase >= phaseEnded {
		return dst
	}
	i, ok := s.find(m.Op)
	switch m.Type {
	case TypeData:
		if !ok {
			return s.end(dst, m.Op, NeverPulled)
		}
		return s.data(dst, m, i)
	case TypeStatus:
		return s.refused(dst, m, i)
	default:
	}
	kind, is := m.kind()
	switch {
	case !is:
		return s.end(dst, m.Op, Unexpected)
	case ok:
		return s.end(dst, m.Op, SameID)
	case m.Invalidated != NoRole:
		return s.end(dst, m.Op, Contradiction)
	case s.live >= s.cfg.Credits:
		return s.end(dst, m.Op, OverCredit)
	case m.Length > s.cfg.MaxOp:
		return s.end(dst, m.Op, OverMaxOp)
	}
	return s.request(dst, m, kind)
}

// end ends the connection, unless it has ended.
func (s *Server) end(dst []Action, id ID, why Why) []Action {
	if s.phase >= phaseEnded {
		return dst
	}
	s.phase = phaseEnded
	return append(dst, Action{Do: End, Op: id, Record: NoRecord, Why: why})
}

// request handles a well-formed request within the limits.
func (s *Server) request(dst []Action, m *Message, kind Kind) []Action {
	v := m.Verdict
	if v.Outcome == OK {
		switch {
		case s.phase == phaseClosing:
			v = Verdict{NACK, Closing}
		case s.queue >= s.cfg.Queue, len(s.unused) == 0:
			v = Verdict{NACK, QueueFull}
		}
	}
	if v.Outcome != OK {
		return s.refuse(dst, m, kind, v)
	}
	i := s.unused[len(s.unused)-1]
	s.unused = s.unused[:len(s.unused)-1]
	s.records[i] = record{kind: kind, class: m.Class, names: m.names(), source: m.Source, id: m.Op, length: m.Length, limit: s.clock.now + m.TTL}
	if kind != Write {
		s.enter(i, recordServing)
		return append(dst, s.action(Serve, i))
	}
	s.enter(i, recordQueued)
	s.records[i].due = s.clock.limit(s.cfg.Dispatch[m.Class])
	a := s.action(Enqueue, i)
	a.N = int64(m.Length) + int64(s.cfg.Overhead)
	return append(dst, a)
}

// refuse refuses a request, which has no record.
func (s *Server) refuse(dst []Action, m *Message, kind Kind, v Verdict) []Action {
	a := Action{Op: m.Op, Record: NoRecord, Kind: kind, Class: m.Class, Source: m.Source}
	switch v.Outcome {
	case RemoteAuth:
		dst = s.failed(dst, a, m.Had)
	case NACK:
		s.stats.Nacks++
	default:
	}
	a.Do, a.Outcome, a.Reason, a.RetryAfter, a.Invalidate = SendStatus, v.Outcome, v.Reason, s.retryAfter(v, a.Class), m.names()
	dst = append(dst, a)
	return s.endIfTooMany(dst, m.Op)
}

// failed records a wrong key. A key that the client once had is no sign of an attack.
func (s *Server) failed(dst []Action, a Action, had bool) []Action {
	s.stats.AuthFailures++
	if !had {
		s.failures.add(s.clock.now)
	}
	a.Do, a.Why = Audit, AuthFailure
	return append(dst, a)
}

// endIfTooMany ends the connection if there were too many wrong keys.
func (s *Server) endIfTooMany(dst []Action, id ID) []Action {
	if !s.failures.over(s.clock.now) {
		return dst
	}
	return s.end(dst, id, TooManyFailures)
}

// data: the blob of a write is in its sink, which the message has invalidated.
func (s *Server) data(dst []Action, m *Message, i int32) []Action {
	r := &s.records[i]
	if r.kind != Write || r.source || r.length != m.Length || m.Invalidated != ServerRole {
		return s.end(dst, m.Op, Contradiction)
	}
	switch r.state {
	case recordPulled:
		s.enter(i, recordOpening)
		return append(dst, s.action(OpenData, i))
	case recordFenced:
		s.stats.Late++
		return s.retire(s.release(dst, i, RefundTimeout), i)
	case recordRevoking:
		s.stats.Late++
		return dst
	default:
		return s.end(dst, m.Op, NeverPulled)
	}
}

// refused: the PULL came too late for the client.
func (s *Server) refused(dst []Action, m *Message, i int32) []Action {
	if i == none {
		if m.Invalidated != NoRole {
			return s.end(dst, m.Op, Contradiction)
		}
		s.stats.Late++
		return dst
	}
	r := &s.records[i]
	sink := r.state == recordPulled || r.state == recordFenced
	if sink && m.Invalidated != ServerRole {
		return s.end(dst, m.Op, Contradiction)
	}
	switch r.state {
	case recordPulled, recordFenced:
		return s.retire(s.release(dst, i, RefundNACK), i)
	case recordReading:
		return s.overrun(dst, i)
	case recordRevoking, recordOverrun:
		s.stats.Late++
		return dst
	default:
		return s.end(dst, m.Op, Unexpected)
	}
}
