package rdmap

// An Admission is the answer of Config.Admit: whether a Read may start.
type Admission uint8

const (
	// Wait: not now. The send queue stalls, as it does while the ORD is used up. When the answer
	// may have changed, the owner makes the stream Fill again.
	Wait Admission = iota
	// Go: the Read starts.
	Go
	// Skip: the Read does not start. It completes with StatusTimeout in its turn, nothing was
	// sent, and the stream continues.
	Skip
)

// admits asks whether r, which nothing else keeps from starting, is admitted. It asks again
// only after Wait. inRun becomes r.InRun. Preconditions: s.mu is held.
func (s *Stream) admits(r *Request, inRun bool) bool {
	if s.config.Admit == nil || r.Kind != KindRead || r.Len == 0 {
		return true
	}
	if r.admission == Wait {
		r.InRun = inRun
		r.admission = s.config.Admit(r)
	}
	return r.admission != Wait
}

// admitted returns how many of the next n requests are admitted, for a run of plain Reads.
// Preconditions: s.mu is held.
func (s *Stream) admitted(n int) int {
	for i := range n {
		r := *s.fill.ring.At(s.fill.next + uint64(i))
		if !isPlainRead(r) || !s.admits(r, i > 0) || r.admission == Skip {
			return i
		}
	}
	return n
}

// skip completes r, the next request, without sending it.
func (s *Stream) skip(r *Request) {
	r.done = true
	s.fill.next++
}

// status returns the status with which r completes, if nothing has failed.
func (r *Request) status() Status {
	if r.admission == Skip {
		return StatusTimeout
	}
	return StatusSuccess
}
