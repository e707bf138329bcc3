package rdmap

// A phase is how far a Stream is on the way to its end. It never goes back:
//
//	phase     Refuse    Shut  a late segment  Terminate, End, the peer's Terminate
//	open      draining  shut  -               ending
//	draining  -         shut  -               ending
//	shut      -         -     late, ErrLate   ending
//	late      -         -     -               ending
//	ending    -         -     -               -
//
// It changes under the Stream's lock, and may be looked at without it.
type phase uint32

const (
	phaseOpen     phase = iota
	phaseDraining       // Post takes nothing more; all else goes on
	phaseShut           // and of what the peer sends only what mayBeLate is taken
	phaseLate           // and nothing of what the peer sends is taken
	phaseEnding         // and nothing is sent but a Terminate
)

// in is the phase now.
func (s *Stream) in() phase { return phase(s.phase.Load()) }

// ending reports whether nothing is taken from the peer or the poster any more, and nothing
// sent but a Terminate.
func (s *Stream) ending() bool { return s.in() == phaseEnding }

// enter begins a phase. It reports false if the stream is in it already, or in a later one.
// Preconditions: s.mu is held.
func (s *Stream) enter(p phase) bool {
	if s.in() >= p {
		return false
	}
	s.phase.Store(uint32(p))
	return true
}

// Refuse makes Post return [ErrEnded] from now on. What was posted before is carried out.
// Refuse does nothing to a stream that is shut or ending.
func (s *Stream) Refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(phaseDraining)
}

// Shut tells that this side has ended its half gracefully: the peer is to send nothing more.
// Post returns [ErrEnded]. Of what still comes only a Terminate and an empty RDMA Write are
// taken: the first segment that is anything else is refused with [ErrLate], and what comes
// behind it is dropped. A segment that is being taken meanwhile counts as one that came
// before. Shut does nothing to a stream that is ending.
func (s *Stream) Shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(phaseShut)
}
