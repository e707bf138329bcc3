//go:build linux && !purego

package transport

// haveRaw tells whether this build has the raw path.
const haveRaw = true

func wakerOf(s Stream) *waker {
	if t, ok := s.(*tap); ok {
		return wakerOf(t.Stream)
	}
	if r, ok := s.(*rawStream); ok {
		return &r.waker
	}
	return &s.(*connStream).waker
}
