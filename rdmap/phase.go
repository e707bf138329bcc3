package rdmap

// A phase is a phase in the life of a Stream. A Stream never returns to an earlier one:
//
//	phase     Refuse    Shut  a late segment  Terminate, End, the peer's Terminate
//	open      draining  shut  -               ending
//	draining  -         shut  -               ending
//	shut      -         -     late, ErrLate   ending
//	late      -         -     -               ending
//	ending    -         -     -               -
//
// It changes under the lock of the Stream, and may be read without it.
type phase uint32

const (
	phaseOpen     phase = iota
	phaseDraining       // Post refuses requests; everything else continues
	phaseShut           // likewise, and only segments that mayBeLate are accepted
	phaseLate           // likewise, and no segment is accepted
	phaseEnding         // likewise, and only a Terminate is sent
)

// in returns the current phase.
func (s *Stream) in() phase { return phase(s.phase.Load()) }

// ending reports whether the stream is in phaseEnding.
func (s *Stream) ending() bool { return s.in() == phaseEnding }

// enter enters a phase. It reports false if the stream is in that phase already, or in a later one.
// Preconditions: s.mu is held.
func (s *Stream) enter(p phase) bool {
	if s.in() >= p {
		return false
	}
	s.phase.Store(uint32(p))
	return true
}

// Refuse makes Post return [ErrEnded] from now on. Requests that were posted before are
// performed. Refuse does nothing on a stream that is shut or ending.
func (s *Stream) Refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(phaseDraining)
}

// Shut reports that this side has ended its half gracefully, so that the peer must not send
// any more. Post returns [ErrEnded]. Of later segments only a Terminate and an empty RDMA
// Write are accepted: the first other segment is refused with [ErrLate], and all segments after
// it are dropped. A segment that is being processed at the same time counts as earlier. Shut
// does nothing on a stream that is ending.
func (s *Stream) Shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(phaseShut)
}
